"""Layers that can save the dtype policies of their parts."""

from typing import Any

import keras
from keras.dtype_policies import DTypePolicyMap


@keras.saving.register_keras_serializable(package="keras_lengen")
class QuantizedPolicies(DTypePolicyMap):
    """Dtype policies of the parts of a layer, and how they were quantized.

    Args:
        default_policy: As for `keras.dtype_policies.DTypePolicyMap`.
        policy_map: As for `keras.dtype_policies.DTypePolicyMap`.
        quantization: Dict of the `keras.quantizers.QuantizationConfig` of
            parts, by path, or `None`.
    """

    def __init__(
        self,
        default_policy: Any = None,
        policy_map: dict[str, Any] | None = None,
        quantization: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(default_policy, policy_map)
        self.quantization = quantization or {}

    def get_config(self) -> dict[str, Any]:
        quantization = keras.saving.serialize_keras_object(self.quantization)
        return {**super().get_config(), "quantization": quantization}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "QuantizedPolicies":
        load = keras.saving.deserialize_keras_object
        return cls(
            **{
                name: load(value, custom_objects)
                for name, value in config.items()
            }
        )


class SublayerPolicies(keras.layers.Layer):
    """Layer that can be saved after `quantize` has changed its parts.

    Keras quantizes a dense layer by changing its dtype policy and, with a
    configuration, how it rounds its inputs. This layer makes its parts from its
    own `dtype`, so if a part is quantized, the configuration contains the
    policies of all parts as `dtype`.
    """

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        parts = {
            part.path: part
            for part in self._flatten_layers(include_self=False)
            if part.path is not None
        }
        policies = {path: _find_policy(part) for path, part in parts.items()}
        if any(policy.quantization_mode for policy in policies.values()):
            quantization = {
                path: part.quantization_config
                for path, part in parts.items()
                if rounds_inputs(part)
            }
            config["dtype"] = forget_ids(
                keras.saving.serialize_keras_object(
                    QuantizedPolicies(
                        _find_policy(self), policies, quantization
                    )
                )
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

    def apply_dtype_policies(self) -> None:
        """Replaces the map of policies in every built part by its own policy.

        Keras cannot save a quantized layer whose policy is a map, and builds it
        without the configuration of its quantization.
        """
        policies = self.dtype_policy
        if not isinstance(policies, DTypePolicyMap):
            return
        # A file of an earlier version has only policies.
        quantization = getattr(policies, "quantization", {})
        for part in self._flatten_layers(include_self=False):
            if part.path is None:
                continue
            part._dtype_policy = _find_policy(part)
            if part.path in quantization:
                set_quantization(part, quantization[part.path])


def _find_policy(layer: Any) -> Any:
    """Finds the policy of one layer, in a map if its policy is one."""
    policy = layer.dtype_policy
    if not isinstance(policy, DTypePolicyMap):
        return policy
    return policy.default_policy if layer.path is None else policy[layer.path]


def rounds_inputs(layer: Any) -> bool:
    """Whether a quantized layer has more settings than its dtype policy."""
    return hasattr(layer, "inputs_quantizer")


def set_quantization(layer: Any, config: Any) -> None:
    """Gives a quantized layer the `QuantizationConfig` that it was made with.

    Keras builds a layer from its policy, with a default of how inputs are
    rounded.
    """
    layer.quantization_config = config
    layer.inputs_quantizer = config.activation_quantizer


def forget_ids(config: Any) -> Any:
    """Removes the ids by which Keras finds the layers of a model it loads.

    Keras would take the ids of temporary objects for those of other layers.
    """
    if isinstance(config, dict):
        return {
            name: forget_ids(value)
            for name, value in config.items()
            if name != "shared_object_id"
        }
    if isinstance(config, list | tuple):
        return type(config)(map(forget_ids, config))
    return config
