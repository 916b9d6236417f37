// Written by `npm run kinds` from the sources of k8s.io/api and k8s.io/apimachinery.

/** The served release of the Kubernetes API. Nodes report it as the version of their kubelet. */
export const KUBERNETES_VERSION = 'v1.36.3';
/** MINOR of the served version 1.MINOR. */
export const KUBERNETES_MINOR = '36';
