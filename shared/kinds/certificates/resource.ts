import { storedResource } from '../stored-resource.ts';
import type { KubeCertificateSigningRequest } from '../types.ts';

export const SIGNING_REQUESTS = storedResource({
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  scope: 'cluster',
  // A machine may create requests, and on AWS nothing else deletes them. It is longer than server/certificates lets a
  // request wait, which deletes them with an event for watches.
  expiresAfterSeconds: 2 * 86_400,
  selectableFields: { 'spec.signerName': (object: KubeCertificateSigningRequest) => object.spec?.signerName ?? '' },
});
