"""ALFWorld, the household text world: an own engine for official and generated games."""
