/** CertificateSigningRequest (pkg/apis/certificates/validation/validation.go). */

import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  requiredOneOf,
  tooLong,
} from '../../kubernetes/causes.ts';
import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { CONDITION_STATUSES } from '../../kubernetes/validate-conditions.ts';
import {
  labelErrors,
  pathSegmentName,
  subdomainErrors,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { KubeCertificateSigningRequest } from '../types.ts';
import { certificatesFault, REQUEST_BYTES_MAX, readCertificateRequest } from './certificate-request.ts';

/** A domain, and a namespace with the name of a resource. */
const SIGNER_LENGTH_MAX = 571;
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

const SIGNER = 'spec.signerName';

/** Errors of the first part that has some: upstream stops there. */
function firstPart(parts: readonly string[], errorsOf: (part: string) => string[], whole: string): Cause[] {
  for (const part of parts) {
    const errors = errorsOf(part);
    if (errors.length === 0) continue;
    return errors.map((error) => invalidValue(SIGNER, whole, `validating label ${JSON.stringify(part)}: ${error}`));
  }
  return [];
}

function validateSigner(name: string): Cause[] {
  if (name === '') return [required(SIGNER, 'signerName must be provided')];
  if (name === 'kubernetes.io/legacy-unknown') {
    return [invalidValue(SIGNER, name, 'the legacy signerName is not allowed via this API version')];
  }
  const [domain = '', path = '', ...more] = name.split('/');
  if (more.length > 0 || !name.includes('/')) {
    const why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalidValue(SIGNER, name, why)];
  }
  const labels = domain.split('.');
  return [
    ...(domain.length > NAME_LENGTH_MAX ? [tooLong(SIGNER, NAME_LENGTH_MAX)] : []),
    ...firstPart(labels, labelErrors, domain),
    ...(labels.length < 2
      ? [invalidValue(SIGNER, domain, 'should be a domain with at least two segments separated by dots')]
      : []),
    ...firstPart(path.split('.'), subdomainErrors, path),
    ...(name.length > SIGNER_LENGTH_MAX ? [tooLong(SIGNER, SIGNER_LENGTH_MAX)] : []),
  ];
}

function validateSpec({ spec = {} }: KubeCertificateSigningRequest): Cause[] {
  const { request = '', signerName = '', usages = [], expirationSeconds } = spec;
  const causes: Cause[] = [];
  const read = readCertificateRequest(request);
  if (read.kind === 'malformed') causes.push(invalidValue('spec.request', request, read.why));
  if (read.kind === 'tooLong') causes.push(tooLong('spec.request', REQUEST_BYTES_MAX));
  if (usages.length === 0) causes.push(required('spec.usages', 'usages must be provided'));
  const seen = new Set<string>();
  for (const [index, usage] of usages.entries()) {
    const field = `spec.usages[${index}]`;
    if (!USAGES.includes(usage)) causes.push(notSupported(field, usage, USAGES));
    if (seen.has(usage)) causes.push(duplicate(field, usage));
    seen.add(usage);
  }
  causes.push(...validateSigner(signerName));
  if (expirationSeconds !== undefined && expirationSeconds < EXPIRATION_SECONDS_MIN) {
    const why = `may not specify a duration less than ${EXPIRATION_SECONDS_MIN} seconds (10 minutes)`;
    causes.push(invalidValue('spec.expirationSeconds', expirationSeconds, why));
  }
  return causes;
}

const decisionsOf = ({ status }: KubeCertificateSigningRequest, type: string): boolean =>
  (status?.conditions ?? []).some((each) => each.type === type);

const DECIDED = ['Approved', 'Denied', 'Failed'];

function validateStates(request: KubeCertificateSigningRequest): Cause[] {
  const seen = new Set<string>();
  return (request.status?.conditions ?? []).flatMap(({ type = '', status }, index) => {
    const field = `status.conditions[${index}]`;
    const causes = type === '' ? [required(`${field}.type`)] : [];
    causes.push(
      ...requiredOneOf(`${field}.status`, status ?? '', DECIDED.includes(type) ? ['True'] : CONDITION_STATUSES),
    );
    if (seen.has(type === 'Approved' ? 'Denied' : type === 'Denied' ? 'Approved' : '/')) {
      const why = 'Approved and Denied conditions are mutually exclusive';
      causes.push(invalidValue(`${field}.type`, type, why));
    }
    if (seen.has(type)) causes.push(duplicate(`${field}.type`, type));
    seen.add(type);
    return causes;
  });
}

/** A certificate stays once it is set. */
function validateCertificate({ status }: KubeCertificateSigningRequest, old: KubeCertificateSigningRequest): Cause[] {
  const { certificate = '' } = status ?? {};
  const { certificate: before = '' } = old.status ?? {};
  const field = 'status.certificate';
  if (certificate === before) return [];
  const causes: Cause[] = [];
  const fault =
    certificate === '' ? undefined : certificatesFault(Buffer.from(certificate, 'base64').toString('latin1'));
  if (fault !== undefined) causes.push(invalidValue(field, '<certificate data>', fault));
  if (before !== '') causes.push(forbiddenField(field, 'updates may not modify existing certificate content'));
  return causes;
}

export function validateCertificateSigningRequest(
  request: KubeCertificateSigningRequest,
  old: KubeCertificateSigningRequest | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(request, old, { namespaced: false, name: pathSegmentName });
  if (old === undefined) return [...causes, ...validateSpec(request)];
  if (subresource === '') return causes;
  causes.push(...validateStates(request), ...validateCertificate(request, old));
  for (const type of DECIDED) {
    if (decisionsOf(old, type) && !decisionsOf(request, type)) {
      causes.push(forbiddenField('status.conditions', `updates may not remove a condition of type "${type}"`));
    }
    if (subresource === 'status' && type !== 'Failed' && !decisionsOf(old, type) && decisionsOf(request, type)) {
      causes.push(forbiddenField('status.conditions', `updates may not add a condition of type "${type}"`));
    }
  }
  return causes;
}
