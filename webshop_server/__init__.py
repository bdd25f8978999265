"""A web shop for language agents: catalogue, search, goals, reward, pages; Flask only in `app`."""
