"""What turns a prompt into text."""
