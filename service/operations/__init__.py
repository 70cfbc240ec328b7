"""What people and machines ask about the service itself: is it well, and what does its database do?"""
