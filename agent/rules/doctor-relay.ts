/** `nodekeeper-agent doctor` on a machine that is a relay, and on one that uses a relay (docs/relay.md). */
import type { AgentConfig, RelayConfig } from '../config.ts';
import { type Finding, failed, isCertificateFault, ok, warning } from './finding.ts';
import { certificateAge, daysLeft } from './relay-certificate.ts';

/** One request to the relay that this machine uses, without a token. */
export type RelayReading =
  | {
      readonly kind: 'answered';
      readonly tookMs: number;
      /** Whether the answer is that of a relay to a request that is no heartbeat. */
      readonly isRelay: boolean;
      readonly status: number;
      /** End of the certificate. Milliseconds since the Unix epoch; undefined if unknown. */
      readonly certificateEndsMs: number | undefined;
    }
  /** `code` as Node names it. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

/** Address and port of the relay that this machine is. */
export type RelayPortReading =
  | { readonly kind: 'free' }
  /** A relay answers there. `isThisCertificate`: it uses the certificate of the configured file. */
  | { readonly kind: 'served'; readonly isThisCertificate: boolean }
  /** It cannot be listened on, and no relay answers there. `code` as Node names it. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

/** Certificate and key of the relay that this machine is. */
export type RelayFilesReading =
  | { readonly kind: 'unusable'; readonly message: string }
  | {
      readonly kind: 'read';
      /** DNS names and addresses of the certificate. */
      readonly names: readonly string[];
      /** Those of them that lead to an address on which the relay listens; undefined: unknown. */
      readonly ownNames: readonly string[] | undefined;
      /** Addresses on which the relay listens. */
      readonly addresses: readonly string[];
      /** Milliseconds since the Unix epoch. */
      readonly expiresAtMs: number;
    };

export interface RelayReadings {
  /** Undefined: this machine uses no relay. */
  readonly usedRelay: RelayReading | undefined;
  /** Undefined: this machine is no relay. */
  readonly ownRelay: { readonly port: RelayPortReading; readonly files: RelayFilesReading } | undefined;
}

/** Whether the agent of this machine runs; undefined: unknown. */
type IsRunning = boolean | undefined;

export function relayFindings(
  { heartbeatEndpoint, relay }: Pick<AgentConfig, 'heartbeatEndpoint' | 'relay'>,
  { usedRelay, ownRelay }: RelayReadings,
  { isRunning, nowMs }: { readonly isRunning: IsRunning; readonly nowMs: number },
): readonly Finding[] {
  const findings: Finding[] = [];
  if (heartbeatEndpoint !== undefined && usedRelay !== undefined) {
    findings.push(used(heartbeatEndpoint, usedRelay, nowMs));
  }
  if (relay !== undefined && ownRelay !== undefined) {
    findings.push(port(relay, ownRelay.port, isRunning), ...certificate(ownRelay.files, nowMs));
  }
  return findings;
}

const RENEW = 'nodekeeper-agent relay init with its directory makes a new one, which the relay uses within an hour.';

const USED_TODO: Readonly<Record<string, string>> = {
  ENOTFOUND: 'Check the name in `heartbeatEndpoint`, and the DNS of this machine.',
  EAI_AGAIN: 'Check the DNS of this machine.',
  ECONNREFUSED: 'Check host and port in `heartbeatEndpoint`, and run the doctor on the relay.',
};
const USED_NETWORK_TODO =
  'Check `heartbeatEndpoint`, routes and firewalls of the site, and run the doctor on the relay.';
const USED_CERTIFICATE_TODO: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: `Renew the certificate on the relay: ${RENEW}`,
  CERT_NOT_YET_VALID: 'Check the clock of this machine.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'Use a name of the certificate in `heartbeatEndpoint`, or make one for this name: nodekeeper-agent relay init --name',
};
const SITE_AUTHORITY_TODO = 'Set `heartbeatCertificateAuthorityFile` to a copy of site-ca.pem of the relay.';
const SERVICE_UNAVAILABLE = 503;

/** A relay that does not answer is no failure of this machine: it sends its heartbeats directly. */
function used(url: string, read: RelayReading, nowMs: number): Finding {
  if (read.kind === 'failed') {
    const { code, message } = read;
    if (isCertificateFault(code)) {
      return failed('relay', `${url}: ${message}`, USED_CERTIFICATE_TODO[code] ?? SITE_AUTHORITY_TODO);
    }
    const direct = `${url}: ${message}; heartbeats are sent directly`;
    return warning('relay', direct, USED_TODO[code] ?? USED_NETWORK_TODO);
  }
  const { tookMs, isRelay, status, certificateEndsMs } = read;
  if (!isRelay && status === SERVICE_UNAVAILABLE) {
    return warning('relay', `${url} is overloaded (503)`, 'Use a second relay for half of the site.');
  }
  if (!isRelay) {
    return failed('relay', `${url} is no relay: it answered ${status}`, 'Check host and port in `heartbeatEndpoint`.');
  }
  const message = `${url} answered in ${Math.round(tookMs)} ms, its certificate is trusted`;
  if (certificateEndsMs === undefined) return ok('relay', message);
  const ends = `${message} and ends in ${daysLeft(certificateEndsMs, nowMs)} days`;
  return certificateAge(certificateEndsMs, nowMs) === 'valid'
    ? ok('relay', ends)
    : warning('relay', ends, `Renew it on the relay: ${RENEW}`);
}

const PORT_TODO: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'Set `relay.address` to an address of this machine, or leave it out to listen on all.',
  ENOTFOUND: 'Set `relay.address` to an address of this machine, or leave it out to listen on all.',
  EACCES: 'Run as root, or set `relay.port` to 1024 or more.',
};

function port({ address, port: number }: RelayConfig, read: RelayPortReading, isRunning: IsRunning): Finding {
  const check = 'relay-port';
  const where = `${address === '' ? 'all addresses' : address}, port ${number}`;
  switch (read.kind) {
    case 'free':
      if (isRunning !== true) return ok(check, `${where}: can be listened on`);
      return failed(
        check,
        `${where}: the agent runs and does not listen`,
        'Restart it: systemctl restart nodekeeper-agent',
      );
    case 'served':
      if (isRunning === false) {
        const todo = `Find the process: ss -ltnp 'sport = :${number}'`;
        return failed(check, `${where}: another process relays there, the agent does not run`, todo);
      }
      if (read.isThisCertificate) return ok(check, `${where}: the agent relays`);
      return warning(
        check,
        `${where}: the agent relays with another certificate than that of its file`,
        'It uses a new one within an hour, or at once after: systemctl restart nodekeeper-agent',
      );
    case 'failed': {
      const inUse = `Stop the program that uses it (ss -ltnp 'sport = :${number}'), or set another \`relay.port\`.`;
      return failed(check, `${where}: ${read.message}`, PORT_TODO[read.code] ?? inUse);
    }
    default:
      return read satisfies never;
  }
}

/** Names in a message. */
const NAMES_MAX = 5;

function listOf(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function certificate(read: RelayFilesReading, nowMs: number): Finding[] {
  const check = 'relay-cert';
  if (read.kind === 'unusable') {
    const todo =
      'Correct `relay.certificateFile` and `relay.privateKeyFile`, or make them: nodekeeper-agent relay init';
    return [failed(check, read.message, todo)];
  }
  const { names, ownNames, addresses, expiresAtMs } = read;
  const makeAnother = 'Make one for the name that machines use: nodekeeper-agent relay init --name';
  if (names.length === 0) {
    return [failed(check, 'the certificate has no DNS name and no address: no machine trusts it', makeAnother)];
  }
  const findings: Finding[] = [];
  if (ownNames?.length === 0) {
    const message = `the certificate is for ${listOf(names)}: none is an address of this machine (${listOf(addresses)})`;
    findings.push(warning(check, message, makeAnother));
  }
  const days = daysLeft(expiresAtMs, nowMs);
  switch (certificateAge(expiresAtMs, nowMs)) {
    case 'expired':
      findings.push(failed(check, 'the certificate has expired: no machine can use the relay', `Renew it: ${RENEW}`));
      break;
    case 'expiresSoon':
      findings.push(warning(check, `the certificate ends in ${days} days`, `Renew it: ${RENEW}`));
      break;
    case 'valid':
      if (findings.length === 0)
        findings.push(ok(check, `fits its key, is for ${listOf(names)}, ends in ${days} days`));
  }
  return findings;
}
