// Flags of Node.js for `nodekeeper serve`. Objects of a request that is in flight survive a collection of the young
// generation, and are then garbage of the old one. With 16 MB instead of 8, an eighth to a quarter less CPU is used,
// and 16 MB more memory by 500 machines (docs/quality.md).
// V8 collects its old generation when that has grown by 15 %. With its default growth, 500 machines need two thirds
// more memory. `--optimize-for-size` needs less, and twice the CPU for lists and watches: each collection is then one
// that reduces memory.
export const NODE_FLAGS = ['--max-semi-space-size=16', '--heap-growing-percent=15'];

// With `--upstream`: requests of a hub are fewer, and it should fit on a small machine (docs/hub.md).
export const HUB_NODE_FLAGS = ['--max-semi-space-size=2', '--heap-growing-percent=15'];
