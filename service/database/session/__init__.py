"""What a session may be left with: how that is noticed, prevented and taken back."""
