"""The rules of the game: goals, actions, pages and the reward of a purchase."""
