/** Names of the objects that every namespace has, and that are created again when they are deleted. */

/** The ServiceAccount of pods that name none. */
export const DEFAULT_ACCOUNT = 'default';
/** The ConfigMap with the certificates that clients in pods trust. */
export const ROOT_CA = 'kube-root-ca.crt';

/** @param resource plural name */
export const isNamespaceContent = (resource: string, name: string): boolean =>
  (resource === 'serviceaccounts' && name === DEFAULT_ACCOUNT) || (resource === 'configmaps' && name === ROOT_CA);
