/** What the parts of the system that read CertificateSigningRequests have in common. */
import type { KubeCertificateSigningRequest } from '../types.ts';

/** Clients of the API, approved by people only. */
export const API_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
/** Kubelets as clients of the API. */
export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
/** Kubelets as servers, approved by people only. */
export const KUBELET_SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

export const conditionOf = ({ status }: KubeCertificateSigningRequest, type: string) =>
  (status?.conditions ?? []).find((condition) => condition.type === type && condition.status === 'True');
