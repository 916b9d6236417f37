/**
 * Stands in for `@aws-sdk/credential-provider-node` in bundles: a Lambda's credentials are in its environment and are
 * given to the client (client.ts), so the chain that looks in files, SSO and metadata services is dead weight.
 */
export function defaultProvider(): () => Promise<never> {
  return async () => {
    throw new Error('no credential chain in this bundle: give the client its credentials');
  };
}
