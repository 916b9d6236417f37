/**
 * What a CertificateSigningRequest needs next: the rules of upstream's csrapproving, csrsigning and csrcleaner. Pure.
 * Source: pkg/controller/certificates/{approver/sarapprove,signer/signer,cleaner/cleaner}.go,
 * pkg/apis/certificates/helpers.go.
 */
import { RESERVED_GROUPS } from '../../shared/access/access-entry.ts';
import { ADMIN_GROUPS, NODE_USER_PREFIX, NODES_GROUP } from '../../shared/access/authorize.ts';
import {
  type CertificateRequest,
  readCertificateRequest,
} from '../../shared/kinds/certificates/certificate-request.ts';
import {
  API_CLIENT_SIGNER,
  conditionOf,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
} from '../../shared/kinds/certificates/signing-request.ts';
import type { KubeCertificateSigningRequest } from '../../shared/kinds/types.ts';
import { nodeNameErrors } from '../../shared/kubernetes/validate-metadata.ts';

/** A right to have requests approved: a subresource of certificatesigningrequests, with the verb `create`. */
export type ApprovalRight = 'selfnodeclient' | 'nodeclient';

export interface Validity {
  readonly fromMs: number;
  readonly throughMs: number;
}

export type NextStep =
  | { readonly kind: 'none' }
  /** To be approved if its author has one of the rights. */
  | {
      readonly kind: 'approve';
      readonly request: CertificateRequest;
      readonly nodeName: string;
      readonly rights: readonly ApprovalRight[];
    }
  | {
      readonly kind: 'sign';
      readonly request: CertificateRequest;
      /** The certificate is the identity of this machine. */
      readonly nodeName?: string;
      readonly validity: Validity;
    }
  | { readonly kind: 'fail'; readonly why: string };

const NONE: NextStep = { kind: 'none' };
const fail = (why: string): NextStep => ({ kind: 'fail', why });

export interface SigningCircumstances {
  readonly nowMs: number;
  /** Whether it is a name or an address of the API: a certificate for it could stand in for the API. */
  readonly isServerName: (name: string) => boolean;
  readonly authorityEndsAtMs: number;
}

export function nextStep(object: KubeCertificateSigningRequest, circumstances: SigningCircumstances): NextStep {
  const { spec = {}, status = {} } = object;
  const { signerName = '' } = spec;
  const faultOf = FAULTS[signerName];
  const isFinal = (status.certificate ?? '') !== '' || conditionOf(object, 'Failed') !== undefined;
  if (faultOf === undefined || isFinal || conditionOf(object, 'Denied') !== undefined) return NONE;
  const isApproved = conditionOf(object, 'Approved') !== undefined;
  // The others are approved by people. Until then nothing of a request costs anything.
  if (!isApproved && signerName !== KUBELET_CLIENT_SIGNER) return NONE;
  const read = readCertificateRequest(spec.request ?? '');
  const refused = (why: string): NextStep => (isApproved ? fail(why) : NONE);
  if (read.kind !== 'request') return refused('the request cannot be read');
  const { request } = read;
  const fault = faultOf(request, spec.usages ?? [], circumstances);
  if (fault !== undefined) return refused(fault);
  const nodeName = request.commonName.slice(NODE_USER_PREFIX.length);
  if (!isApproved) {
    const isOwn = spec.username === request.commonName;
    return { kind: 'approve', request, nodeName, rights: isOwn ? ['selfnodeclient', 'nodeclient'] : ['nodeclient'] };
  }
  const validity = validityOf(spec.expirationSeconds, circumstances);
  if (validity === undefined) return fail('the authority has ended');
  return { kind: 'sign', request, ...(signerName === KUBELET_CLIENT_SIGNER && { nodeName }), validity };
}

/** Why a signer does not sign a request. undefined: it does. */
type FaultOf = (
  request: CertificateRequest,
  usages: readonly string[],
  circumstances: Pick<SigningCircumstances, 'isServerName'>,
) => string | undefined;

const sameSet = (usages: readonly string[], wanted: readonly string[]): boolean =>
  usages.length === wanted.length && wanted.every((usage) => usages.includes(usage));

/** Keys for RSA encipher keys as well. */
function usagesFault(usages: readonly string[], purpose: string): string | undefined {
  const wanted = ['digital signature', purpose];
  if (sameSet(usages, wanted) || sameSet(usages, [...wanted, 'key encipherment'])) return undefined;
  return `usages ${JSON.stringify(usages)}: must be "digital signature" and "${purpose}", with or without "key encipherment"`;
}

function machineFault({ organizations, commonName }: CertificateRequest): string | undefined {
  if (organizations.length !== 1 || organizations[0] !== NODES_GROUP) {
    return `organizations ${JSON.stringify(organizations)}: must be "${NODES_GROUP}" alone`;
  }
  const field = `common name ${JSON.stringify(commonName)}`;
  if (!commonName.startsWith(NODE_USER_PREFIX)) return `${field}: must begin with ${NODE_USER_PREFIX}`;
  const [error] = nodeNameErrors(commonName.slice(NODE_USER_PREFIX.length));
  return error && `${field}: the name of the node: ${error}`;
}

const kubeletClientFault: FaultOf = (request, usages) => {
  if (request.alternativeNames.length > 0) return 'subjectAltNames are not allowed';
  const { keyType } = request;
  // The key becomes one of the machine's own keys.
  if (keyType !== 'EC P-256' && keyType !== 'Ed25519') return `key ${keyType}: must be EC P-256 or Ed25519`;
  return usagesFault(usages, 'client auth') ?? machineFault(request);
};

const kubeletServingFault: FaultOf = (request, usages, { isServerName }) => {
  const names = request.alternativeNames;
  if (!names.some(({ type }) => type === 'dns' || type === 'ip')) return 'DNS or IP subjectAltName is required';
  if (names.some(({ type }) => type === 'email' || type === 'url'))
    return 'only DNS and IP subjectAltNames are allowed';
  const own = names.find(({ value }) => value.includes('*') || isServerName(value));
  if (own !== undefined) return `${own.value} may be a name of the API`;
  return usagesFault(usages, 'server auth') ?? machineFault(request);
};

const CLIENT_USAGES = ['client auth', 'digital signature', 'key encipherment'];

const apiClientFault: FaultOf = ({ organizations }, usages) => {
  const other = usages.find((usage) => !CLIENT_USAGES.includes(usage));
  if (other !== undefined) return `invalid usage for client certificate: ${other}`;
  if (!usages.includes('client auth')) return 'missing required usage for client certificate: client auth';
  const group = organizations.find((each) => ADMIN_GROUPS.has(each) || RESERVED_GROUPS.has(each));
  return group === undefined ? undefined : `the group ${group} is not for this signer`;
};

const FAULTS: Readonly<Record<string, FaultOf>> = {
  [API_CLIENT_SIGNER]: apiClientFault,
  [KUBELET_CLIENT_SIGNER]: kubeletClientFault,
  [KUBELET_SERVING_SIGNER]: kubeletServingFault,
};

const VALID_SECONDS_MAX = 365 * 86_400;
const VALID_SECONDS_MIN = 600;
/** Clocks of those who verify it may be behind ours. It is a hundredth of SHORT_SECONDS. */
const BACKDATED_SECONDS = 300;
/** A shorter validity is counted from now, not from the backdated beginning. */
const SHORT_SECONDS = 8 * 3_600;

/** Whole seconds, as in a certificate. undefined: the authority has ended. */
function validityOf(
  expirationSeconds: number | undefined,
  { nowMs, authorityEndsAtMs }: SigningCircumstances,
): Validity | undefined {
  const wanted = Math.min(VALID_SECONDS_MAX, Math.max(VALID_SECONDS_MIN, expirationSeconds ?? VALID_SECONDS_MAX));
  const now = Math.floor(nowMs / 1_000);
  const from = now - BACKDATED_SECONDS;
  const through = Math.min((wanted < SHORT_SECONDS ? now : from) + wanted, Math.floor(authorityEndsAtMs / 1_000));
  return through <= now ? undefined : { fromMs: from * 1_000, throughMs: through * 1_000 };
}

const HOUR_MS = 3_600_000;
const SETTLED_MS = HOUR_MS;
const PENDING_MS = 24 * HOUR_MS;

/**
 * Whether a request is of no use any more. A client reads its certificate within seconds.
 *
 * @param certificateEndsAtMs of an issued certificate
 */
export function isOutdated(
  object: KubeCertificateSigningRequest,
  nowMs: number,
  certificateEndsAtMs: number | undefined,
): boolean {
  const { metadata, status = {} } = object;
  const isOlder = (time: string | null | undefined, milliseconds: number): boolean =>
    typeof time === 'string' && nowMs - Date.parse(time) > milliseconds;
  const settled = conditionOf(object, 'Denied') ?? conditionOf(object, 'Failed');
  if (settled !== undefined) return isOlder(settled.lastUpdateTime, SETTLED_MS);
  const approved = conditionOf(object, 'Approved');
  if (approved === undefined) return isOlder(metadata.creationTimestamp, PENDING_MS);
  // Not in upstream: a signer that never signs leaves its requests.
  if ((status.certificate ?? '') === '') return isOlder(approved.lastUpdateTime, PENDING_MS);
  return isOlder(approved.lastUpdateTime, SETTLED_MS) || (certificateEndsAtMs ?? nowMs) < nowMs;
}
