import { storedResource } from '../stored-resource.ts';
import type { KubeCertificateSigningRequest } from '../types.ts';

export const SIGNING_REQUESTS = storedResource({
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  scope: 'cluster',
  selectableFields: { 'spec.signerName': (object: KubeCertificateSigningRequest) => object.spec?.signerName ?? '' },
});
