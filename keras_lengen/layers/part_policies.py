"""Layers that save the dtype policies of their parts."""

import keras
from keras.dtype_policies import DTypePolicyMap


class PartPolicies(keras.layers.Layer):
    """A layer that can be saved after `quantize` has changed its parts.

    Keras quantizes a dense layer by another dtype policy. The parts of this
    layer are made from its own `dtype`, so its configuration has a map of
    policies where those of parts differ.
    """

    def get_config(self):
        config = super().get_config()
        parts = {
            part.path: _find_policy(part)
            for part in self._flatten_layers(include_self=False)
            if part.path is not None
        }
        if any(policy.quantization_mode for policy in parts.values()):
            config["dtype"] = keras.saving.serialize_keras_object(
                DTypePolicyMap(_find_policy(self), parts)
            )
        return config

    def part_policy(self, policy):
        """The policy of a part, by default not that of the layer."""
        if isinstance(self.dtype_policy, DTypePolicyMap):
            return self.dtype_policy
        return policy

    def settle_policies(self):
        """Gives every built part its policy, in place of a map of them all.

        Keras cannot save a quantized layer that has a map.
        """
        if not isinstance(self.dtype_policy, DTypePolicyMap):
            return
        for part in self._flatten_layers(include_self=False):
            if part.path is not None:
                part._dtype_policy = _find_policy(part)


def _find_policy(layer):
    """The policy of a layer alone, out of a map."""
    policy = layer.dtype_policy
    if not isinstance(policy, DTypePolicyMap):
        return policy
    return policy.default_policy if layer.path is None else policy[layer.path]
