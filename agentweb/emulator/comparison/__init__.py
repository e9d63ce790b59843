"""The same requests played against the emulator and another address of the API."""
