// Flags of Node.js for `nodekeeper serve`: V8 collects its old generation when that has grown by 15 %. With its default
// growth, 500 machines need 310 MB instead of 184. `--optimize-for-size` needs 162 MB, and twice the CPU for lists and
// watches: each collection is then one that reduces memory (docs/quality.md).
export const NODE_FLAGS = ['--max-semi-space-size=8', '--heap-growing-percent=15'];
