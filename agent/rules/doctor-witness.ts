/** `nodekeeper-agent doctor` on a machine that its site watches (docs/witnesses.md). */
import type { AgentConfig, WitnessConfig } from '../config.ts';
import { type Finding, failed, ok, warning } from './finding.ts';

export interface WitnessReading {
  readonly port:
    | { readonly kind: 'free' }
    /** This machine answers probes there. */
    | { readonly kind: 'answers' }
    /** It cannot be listened on, and this machine does not answer there. `code` as Node names it. */
    | { readonly kind: 'failed'; readonly code: string; readonly message: string };
  /** Whether the relay accepts the connection for the site. `failed`: it cannot be reached. */
  readonly relay: 'joined' | 'unsupported' | 'failed';
}

const CHECK = 'witness';

/** @param isRunning whether the agent runs; undefined: unknown */
export function witnessFindings(
  { heartbeatEndpoint, witness }: Pick<AgentConfig, 'heartbeatEndpoint' | 'witness'>,
  read: WitnessReading | undefined,
  isRunning: boolean | undefined,
): readonly Finding[] {
  if (heartbeatEndpoint === undefined) return [];
  if (witness === undefined || read === undefined) return [ok(CHECK, 'off: the site does not watch this machine')];
  return [portFinding(witness, read, isRunning)];
}

function portFinding({ address, port }: WitnessConfig, read: WitnessReading, isRunning: boolean | undefined): Finding {
  const where = `${address === '' ? 'all addresses' : address}, port ${port}`;
  if (read.port.kind === 'failed') {
    const { code, message } = read.port;
    const todo =
      code === 'EADDRNOTAVAIL'
        ? 'Set `witness.address` to an address of this machine, or remove it.'
        : `Stop the program that uses it (ss -ltnp 'sport = :${port}'), or set another \`witness.port\`.`;
    return failed(CHECK, `${where}: ${message}`, todo);
  }
  if (read.port.kind === 'free' && isRunning === true) {
    return warning(CHECK, `${where}: the agent runs and does not answer probes`, 'Restart it, and read its log.');
  }
  if (read.relay === 'unsupported') {
    return warning(CHECK, 'the relay does not watch its site', 'Update the agent of the relay.');
  }
  const what = read.port.kind === 'answers' ? 'the agent answers probes' : 'can be listened on';
  const relay = read.relay === 'joined' ? ', and the relay watches the site' : '';
  return ok(CHECK, `${where}: ${what}${relay}`);
}
