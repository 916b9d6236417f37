/** CertificateSigningRequest (pkg/apis/certificates/validation/validation.go). */
import type { KubeCertificateSigningRequest } from '../application-types.ts';
import type { Cause } from '../status.ts';
import { duplicate, forbiddenField, invalidValue, notSupported, required } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { pathSegmentName } from './names.ts';

const PEM = /^\s*-----BEGIN CERTIFICATE REQUEST-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE REQUEST-----\s*$/;
/** Shortest validity that a client may request. Seconds. */
const EXPIRATION_SECONDS_MIN = 600;

const USAGES = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

function validateSpec({ spec = {} }: KubeCertificateSigningRequest): Cause[] {
  const { request = '', signerName = '', usages = [], expirationSeconds } = spec;
  const causes: Cause[] = [];
  if (!PEM.test(Buffer.from(request, 'base64').toString('utf8'))) {
    causes.push(invalidValue('spec.request', request, 'PEM block type must be CERTIFICATE REQUEST'));
  }
  if (usages.length === 0) causes.push(required('spec.usages'));
  const seen = new Set<string>();
  for (const [index, usage] of usages.entries()) {
    const field = `spec.usages[${index}]`;
    if (!USAGES.includes(usage)) causes.push(notSupported(field, usage, USAGES));
    if (seen.has(usage)) causes.push(duplicate(field, usage));
    seen.add(usage);
  }
  if (signerName === '') causes.push(required('spec.signerName'));
  else if (signerName === 'kubernetes.io/legacy-unknown') {
    causes.push(
      invalidValue('spec.signerName', signerName, 'the legacy signerName is not allowed via this API version'),
    );
  } else if (!/^[a-z0-9.-]+\/\S+$/.test(signerName)) {
    const why = 'must be a fully qualified domain and path of the form "example.com/signer-name"';
    causes.push(invalidValue('spec.signerName', signerName, why));
  }
  if (expirationSeconds !== undefined && expirationSeconds < EXPIRATION_SECONDS_MIN) {
    const why = `may not specify a duration less than ${EXPIRATION_SECONDS_MIN} seconds (10 minutes)`;
    causes.push(invalidValue('spec.expirationSeconds', expirationSeconds, why));
  }
  return causes;
}

const decisionsOf = ({ status }: KubeCertificateSigningRequest, type: string): boolean =>
  (status?.conditions ?? []).some((each) => each.type === type);

export function validateCertificateSigningRequest(
  request: KubeCertificateSigningRequest,
  old: KubeCertificateSigningRequest | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(request, old, { namespaced: false, name: pathSegmentName });
  if (old === undefined) return [...causes, ...validateSpec(request)];
  if (subresource === '') return causes;
  if (decisionsOf(request, 'Approved') && decisionsOf(request, 'Denied')) {
    causes.push(invalidValue('status.conditions', 'Denied', 'Approved and Denied conditions are mutually exclusive'));
  }
  for (const type of ['Approved', 'Denied']) {
    if (decisionsOf(old, type) && !decisionsOf(request, type)) {
      causes.push(forbiddenField('status.conditions', `updates may not remove a condition of type "${type}"`));
    }
    if (subresource === 'status' && !decisionsOf(old, type) && decisionsOf(request, type)) {
      causes.push(forbiddenField('status.conditions', `updates may not add a condition of type "${type}"`));
    }
  }
  return causes;
}
