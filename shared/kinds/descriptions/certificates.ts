import type { Descriptions } from './descriptions.ts';

export const certificates: Descriptions = {
  'certificates/v1.CertificateSigningRequest': {
    '': 'CertificateSigningRequest objects provide a mechanism to obtain x509 certificates. nodekeeper serve signs them; on AWS they are stored, and nothing is signed.',
    spec: 'What is requested.',
    status: 'State of the request.',
  },
  'certificates/v1.CertificateSigningRequestCondition': {
    '': 'One decision about a request.',
    type: 'Approved, Denied or Failed.',
    status: 'True.',
    lastUpdateTime: 'When the condition was last updated.',
  },
  'certificates/v1.CertificateSigningRequestSpec': {
    '': 'What is requested.',
    request: 'Certificate request in PEM, as base64.',
    signerName: 'Signer of the certificate.',
    expirationSeconds: 'Requested validity in seconds, at least 600.',
    usages: 'Usages of the certificate.',
    username: 'User who created the request. Set by the server.',
    uid: 'UID of the user. Set by the server.',
    groups: 'Groups of the user. Set by the server.',
    extra: 'Further attributes of the user. Set by the server.',
  },
  'certificates/v1.CertificateSigningRequestStatus': {
    '': 'State of a request.',
    conditions: 'Decisions about the request.',
    certificate: 'Certificate in PEM, as base64.',
  },
};
