/**
 * Replaces `@aws-sdk/credential-provider-node` in bundles. A Lambda's credentials are in its environment, and client.ts
 * passes them to the client, so the chain that searches files, SSO and metadata services is not needed.
 */
export function defaultProvider(): () => Promise<never> {
  return async () => {
    throw new Error('no credential chain in this bundle: pass credentials to the client');
  };
}
