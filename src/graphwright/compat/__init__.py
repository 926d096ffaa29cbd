"""Import paths of other packages that can be made to lead here, each on request only."""
