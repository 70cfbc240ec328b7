"""What operators watch: numbers of all workers together, and where a program that gathers them finds them."""
