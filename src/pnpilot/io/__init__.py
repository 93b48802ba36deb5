"""Reading images and folders, writing results whole or not at all."""
