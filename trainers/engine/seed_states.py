"""The states of a model's random generators."""


def find_seed_states(model):
    """Returns the state variables of all random generators of a model."""
    weights = {id(weight) for weight in model.weights}
    return [
        variable for variable in model.variables if id(variable) not in weights
    ]
