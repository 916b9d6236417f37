/** node:https for handlers: see handler-bundles.ts. */
module.exports = process.getBuiltinModule('node:https');
