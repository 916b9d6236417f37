/**
 * Keeps the server of a relay open (docs/relay.md). A relay that cannot listen affects the heartbeats of no machine:
 * each one sends its own, this one too. So the agent continues, reports the fault, and tries again.
 *
 * The certificate is read again every hour. A new one is used without a restart.
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime } from '../ports/time.ts';
import { certificateAge } from '../rules/relay-certificate.ts';
import { describeError } from './describe-error.ts';

const OPEN_WAITS: Backoff = { firstMs: 1_000, limitMs: 60_000 };
const CHECK_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** A certificate that was read from its files. */
export interface RelayCertificate {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  /** Milliseconds since the Unix epoch. */
  readonly expiresAtMs: number;
}

export interface OpenRelay {
  /** New connections use it. @throws Error for a certificate that does not fit its key */
  useCertificate(certificate: RelayCertificate): void;
  close(): Promise<void>;
}

export interface RelayListenerDependencies {
  /** '': all addresses of the machine. */
  readonly address: string;
  readonly port: number;
  /** @throws Error if a file cannot be read, or is no certificate */
  readonly readCertificate: () => RelayCertificate;
  /** Rejects if the port is in use. @throws Error for a certificate that does not fit its key */
  readonly open: (certificate: RelayCertificate) => Promise<OpenRelay>;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: Pick<AgentMeter, 'gauge'>;
}

export class RelayListener {
  readonly #dependencies: RelayListenerDependencies;
  /** Why the relay does not listen. */
  #fault: string | undefined;
  #expiresAtMs = Number.POSITIVE_INFINITY;
  #warnedAtMs = Number.NEGATIVE_INFINITY;

  constructor(dependencies: RelayListenerDependencies) {
    this.#dependencies = dependencies;
  }

  /** What is wrong; undefined while machines can use the relay. */
  complaint(): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    const age = certificateAge(this.#expiresAtMs, this.#dependencies.time.nowMs());
    return age === 'expired' ? `the certificate of the relay expired at ${timeText(this.#expiresAtMs)}` : undefined;
  }

  /** Serves until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { time, open, readCertificate } = this.#dependencies;
    for (let attempt = 0; !stop.aborted; attempt += 1) {
      try {
        const certificate = readCertificate();
        const server = await open(certificate);
        try {
          await this.#serve(server, certificate, stop);
        } finally {
          await server.close();
        }
        return;
      } catch (cause) {
        const waitMs = backoffMs(OPEN_WAITS, attempt);
        this.#failed(cause, waitMs);
        await time.sleep(waitMs, stop);
      }
    }
  }

  async #serve(server: OpenRelay, first: RelayCertificate, stop: AbortSignal): Promise<void> {
    const { address, port, log, meter, time } = this.#dependencies;
    this.#fault = undefined;
    meter.gauge('nodekeeper_agent_relay_listening', 1);
    log.info('the relay listens', { address, port, certificateExpiresAt: timeText(first.expiresAtMs) });
    let used = first;
    while (!stop.aborted) {
      this.#checkExpiry(used);
      await time.sleep(CHECK_MS, stop);
      if (!stop.aborted) used = this.#renewed(server, used);
    }
  }

  /** The certificate of the files, if it is another one and can be used. */
  #renewed(server: OpenRelay, used: RelayCertificate): RelayCertificate {
    const { readCertificate, log } = this.#dependencies;
    try {
      const read = readCertificate();
      if (read.certificatePem === used.certificatePem && read.privateKeyPem === used.privateKeyPem) return used;
      server.useCertificate(read);
      log.info('the relay uses a new certificate', { certificateExpiresAt: timeText(read.expiresAtMs) });
      return read;
    } catch (cause) {
      log.warn('the certificate of the relay cannot be read again; the previous one is used', {
        why: describeError(cause),
      });
      return used;
    }
  }

  #checkExpiry({ expiresAtMs }: RelayCertificate): void {
    const { log, meter, time } = this.#dependencies;
    this.#expiresAtMs = expiresAtMs;
    meter.gauge('nodekeeper_agent_relay_certificate_expires_time_seconds', Math.floor(expiresAtMs / 1_000));
    const nowMs = time.nowMs();
    const age = certificateAge(expiresAtMs, nowMs);
    if (age === 'valid' || nowMs - this.#warnedAtMs < DAY_MS) return;
    this.#warnedAtMs = nowMs;
    const details = { expiresAt: timeText(expiresAtMs), renew: 'nodekeeper-agent relay init' };
    if (age === 'expiresSoon') log.warn('the certificate of the relay expires soon', details);
    else log.error('the certificate of the relay has expired; no machine can use the relay', details);
  }

  #failed(cause: unknown, waitMs: number): void {
    const { address, port, log, meter } = this.#dependencies;
    const why = describeError(cause);
    const fault = `the relay cannot listen on ${address}:${port}: ${why}`;
    meter.gauge('nodekeeper_agent_relay_listening', 0);
    // Once per reason.
    if (fault === this.#fault) log.debug('the relay still cannot listen', { address, port, why, waitMs });
    else log.error('the relay cannot listen; it is tried again', { address, port, why, waitMs });
    this.#fault = fault;
  }
}

const timeText = (atMs: number): string => new Date(atMs).toISOString();
