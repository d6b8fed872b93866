"""The methods: ours, its opponents, and what they share."""
