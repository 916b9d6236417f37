import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  always,
  bytes,
  embedded,
  int32,
  kindStruct,
  listOf,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textList,
  textListMap,
  time,
} from '../../kubernetes/schema/schema.ts';

const CERTIFICATES = 'io.k8s.api.certificates.v1';

const certificateSigningRequestSpec = struct(`${CERTIFICATES}.CertificateSigningRequestSpec`, 'What is requested.', {
  request: required(bytes('Certificate request in PEM, as base64.')),
  signerName: required(text('Signer of the certificate.')),
  expirationSeconds: pointer(int32('Requested validity in seconds, at least 600.')),
  usages: textList('Usages of the certificate.'),
  username: text('User who created the request. Set by the server.'),
  uid: text('UID of the user. Set by the server.'),
  groups: textList('Groups of the user. Set by the server.'),
  extra: textListMap('Further attributes of the user. Set by the server.'),
});

const certificateSigningRequestCondition = struct(
  `${CERTIFICATES}.CertificateSigningRequestCondition`,
  'One decision about a request.',
  {
    type: required(text('Approved, Denied or Failed.')),
    status: required(text('True.')),
    reason: text('One word for the cause, for programs.'),
    message: text('Explanation for people.'),
    lastUpdateTime: always(time('When the condition was last updated.')),
    lastTransitionTime: always(time('When the status last changed.')),
  },
);

const certificateSigningRequestStatus = struct(
  `${CERTIFICATES}.CertificateSigningRequestStatus`,
  'State of a request.',
  {
    conditions: listOf(certificateSigningRequestCondition, 'Decisions about the request.', {
      listType: 'map',
      mapKeys: ['type'],
    }),
    certificate: bytes('Certificate in PEM, as base64.'),
  },
);

export const certificateSigningRequest: StructSchema = kindStruct(
  `${CERTIFICATES}.CertificateSigningRequest`,
  { group: 'certificates.k8s.io', version: 'v1', kind: 'CertificateSigningRequest' },
  'CertificateSigningRequest objects provide a mechanism to obtain x509 certificates. They are stored here; nothing is signed.',
  {
    metadata,
    spec: required(embedded(certificateSigningRequestSpec, 'What is requested.')),
    status: embedded(certificateSigningRequestStatus, 'State of the request.'),
  },
);
