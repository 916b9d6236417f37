// Flags of Node.js for `nodekeeper serve`. Objects of a request that is in flight survive a collection of the young
// generation, and are then garbage of the old one. With 16 MB instead of 8, an eighth to a quarter less CPU is used,
// and 16 MB more memory by 500 machines (docs/quality.md).
// V8 collects its old generation when that has grown by 15 %. With its default growth, 500 machines need two thirds
// more memory. `--optimize-for-size` needs less, and twice the CPU for lists and watches: each collection is then one
// that reduces memory.
export const NODE_FLAGS = ['--max-semi-space-size=16', '--heap-growing-percent=15'];

// With `--upstream`: requests of a hub are fewer, and it should fit on a small machine. An interpreter alone needs a
// quarter less memory, and more CPU for lists and the first copy.
export const RELEASED_HUB_NODE_FLAGS = ['--lite-mode', '--max-semi-space-size=2', '--heap-growing-percent=15'];

// `--lite-mode` has no WebAssembly, by which Node.js reads the TypeScript of a clone. A release is bundled: there this
// file has no path of its own.
const isClone = import.meta.url.endsWith('/shared/config/serve-flags.mjs');
export const HUB_NODE_FLAGS = isClone ? RELEASED_HUB_NODE_FLAGS.slice(1) : RELEASED_HUB_NODE_FLAGS;
