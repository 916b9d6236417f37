export const NODE_FLAGS: readonly string[];
export const HUB_NODE_FLAGS: readonly string[];
export const RELEASED_HUB_NODE_FLAGS: readonly string[];
