/** Measurements of relays for `nodekeeper-agent doctor`. None of them changes anything, and none rejects. */
import { X509Certificate } from 'node:crypto';
import { createServer, isIP } from 'node:net';
import type { AgentConfig, RelayConfig } from '../../config.ts';
import type { RelayFilesReading, RelayPortReading, RelayReading } from '../../rules/doctor-relay.ts';
import { leasePath } from '../../rules/lease.ts';
import { refusesReads } from '../../rules/relay.ts';
import type { LinuxMachine } from '../linux-machine/linux-machine.ts';
import { readRelayCertificate } from '../relay/certificate-files.ts';
import { checkFit, listenOn } from '../relay/relay-server.ts';
import { askServer } from './ask-server.ts';

/** A certificate has at most this many names that are looked up. */
const NAMES_MAX = 20;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The relay that this machine uses. As the agent, without a proxy. */
export async function readUsedRelay({
  heartbeatEndpoint: endpoint,
  heartbeatCertificateAuthority: certificateAuthority,
  nodeName,
}: Pick<AgentConfig, 'heartbeatEndpoint' | 'heartbeatCertificateAuthority' | 'nodeName'>): Promise<
  RelayReading | undefined
> {
  if (endpoint === undefined) return undefined;
  const answer = await askServer({ endpoint, path: leasePath(nodeName), certificateAuthority });
  return answer.kind === 'failed' ? answer : { ...answer, isRelay: refusesReads(answer) };
}

/** The relay that this machine is. */
export async function readOwnRelay(
  { relay, nodeName }: Pick<AgentConfig, 'relay' | 'nodeName'>,
  machine: Pick<LinuxMachine, 'addresses' | 'lookup'>,
): Promise<{ readonly port: RelayPortReading; readonly files: RelayFilesReading } | undefined> {
  if (relay === undefined) return undefined;
  const [port, files] = await Promise.all([readPort(relay, nodeName), readFiles(relay, machine)]);
  return { port, files };
}

async function readPort(relay: RelayConfig, nodeName: string): Promise<RelayPortReading> {
  const server = createServer();
  try {
    await listenOn(server, relay);
    return { kind: 'free' };
  } catch (error) {
    const { code, message } = error as Error & { readonly code: string };
    // Stryker disable next-line ConditionalExpression: saves a question that no server answers
    if (code === 'EADDRINUSE') {
      const endpoint = `https://${hostOf(relay.address)}:${relay.port}`;
      const answer = await askServer({ endpoint, path: leasePath(nodeName), trustsAny: true });
      if (answer.kind === 'answered' && refusesReads(answer)) {
        return { kind: 'served', isThisCertificate: answer.certificateFingerprint === fingerprintIn(relay) };
      }
    }
    return { kind: 'failed', code, message };
  } finally {
    server.close();
  }
}

/** The host of a URL to a server that listens on this address. */
function hostOf(address: string): string {
  if (address === '' || address === '0.0.0.0') return '127.0.0.1';
  if (address === '::') return '[::1]';
  return isIP(address) === 6 ? `[${address}]` : address;
}

function fingerprintIn(relay: RelayConfig): string | undefined {
  try {
    return new X509Certificate(readRelayCertificate(relay).certificatePem).fingerprint256;
  } catch {
    // The reading of the files says why.
    return undefined;
  }
}

async function readFiles(
  relay: RelayConfig,
  machine: Pick<LinuxMachine, 'addresses' | 'lookup'>,
): Promise<RelayFilesReading> {
  try {
    const read = readRelayCertificate(relay);
    checkFit(read);
    const addresses = await listeningAddresses(relay.address, machine);
    const certificate = new X509Certificate(read.certificatePem);
    const { dnsNames, ipAddresses } = namesIn(certificate);
    const ownAddresses = addresses.filter((address) => certificate.checkIP(address) !== undefined);
    const ownDnsNames = await Promise.all(
      dnsNames.map(async (name) => {
        const found = await machine.lookup(name);
        return found.some(({ address }) => addresses.includes(address)) ? [name] : [];
      }),
    );
    return {
      kind: 'read',
      names: [...dnsNames, ...ipAddresses],
      // The names under a wildcard are not known.
      ownNames: dnsNames.some((name) => name.includes('*')) ? undefined : [...ownAddresses, ...ownDnsNames.flat()],
      addresses,
      expiresAtMs: read.expiresAtMs,
    };
  } catch (error) {
    return { kind: 'unusable', message: textOf(error) };
  }
}

async function listeningAddresses(
  address: string,
  machine: Pick<LinuxMachine, 'addresses' | 'lookup'>,
): Promise<readonly string[]> {
  if (isIP(address) === 0 && address !== '') return (await machine.lookup(address)).map((each) => each.address);
  if (address !== '' && address !== '0.0.0.0' && address !== '::') return [address];
  // Other machines cannot reach those of loopback.
  const reachable = machine.addresses().filter(({ interfaceName }) => interfaceName !== 'lo');
  return reachable.map((each) => each.address);
}

/** `DNS:relay.site.example, IP Address:10.0.0.7`. */
function namesIn({ subjectAltName }: X509Certificate) {
  const entries = (subjectAltName?.split(', ') ?? []).slice(0, NAMES_MAX);
  const of = (type: string): string[] =>
    entries.flatMap((entry) => (entry.startsWith(type) ? [entry.slice(type.length)] : []));
  return { dnsNames: of('DNS:'), ipAddresses: of('IP Address:') };
}
