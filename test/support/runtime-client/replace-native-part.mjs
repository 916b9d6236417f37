/**
 * Preloaded into a process of aws-lambda-ric: replaces its native part, which npm would have to compile (C++, libcurl),
 * by a module beside this file. The rest of the package runs unchanged.
 */
import { registerHooks } from 'node:module';

const replacement = new URL('./rapid-client.cjs', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === './rapid-client.node'
      ? { url: replacement, format: 'commonjs', shortCircuit: true }
      : next(specifier, context),
});
