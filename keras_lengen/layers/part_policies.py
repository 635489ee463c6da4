"""Layers that can save the dtype policies of their parts."""

from typing import Any

import keras
from keras.dtype_policies import DTypePolicyMap


class PartPolicies(keras.layers.Layer):
    """Layer that can be saved after `quantize` has changed its parts.

    Keras quantizes a dense layer by changing its dtype policy. This layer
    makes its parts from its own `dtype`, so if a part is quantized, the
    configuration contains a map of the policies of all parts as `dtype`.
    """

    def get_config(self) -> dict[str, Any]:
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

    def part_policy(self, policy: Any) -> Any:
        """Returns the layer's map of policies, or else `policy`.

        Args:
            policy: Dtype policy of a part that does not use the layer's own.
        """
        if isinstance(self.dtype_policy, DTypePolicyMap):
            return self.dtype_policy
        return policy

    def settle_policies(self) -> None:
        """Replaces the map of policies in every built part by its own policy.

        Keras cannot save a quantized layer whose policy is a map.
        """
        if not isinstance(self.dtype_policy, DTypePolicyMap):
            return
        for part in self._flatten_layers(include_self=False):
            if part.path is not None:
                part._dtype_policy = _find_policy(part)


def _find_policy(layer: Any) -> Any:
    """Finds the policy of one layer, in a map if its policy is one."""
    policy = layer.dtype_policy
    if not isinstance(policy, DTypePolicyMap):
        return policy
    return policy.default_policy if layer.path is None else policy[layer.path]
