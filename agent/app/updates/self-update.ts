/**
 * Updates the agent when the API says so (docs/agent.md, "Updates").
 *
 *   after a start on trial   two accepted heartbeats confirm the version, or the start program returns to the last one
 *   every period             report the version; on the answer `update`: download, check, store, restart
 *
 * A download that fails is tried again with the next report, and a file that is not the signed one too: both may be
 * faults of the way. A file that is signed but does not run here is remembered, and not tried again. Heartbeats never
 * wait for any of this.
 *
 * A version that sent no accepted heartbeats on trial may have met an outage. The first heartbeat of the version before
 * decides: if it is not accepted either, the new version is tried again, a few times at most.
 */
import type { Log } from '../../../shared/observability/log.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { AgentTime, Fraction } from '../../ports/time.ts';
import type { UpdateSource } from '../../ports/update-source.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import {
  type OfferedRelease,
  signatureFault,
  UPDATE_BYTES_MAX,
  updateAnswer,
  updateRequest,
} from '../../rules/update-check.ts';
import { CONFIRMING_BEATS, type FailedArtifact } from '../../rules/update-record.ts';
import { describeError } from '../describe-error.ts';
import type { InstalledVersions } from './installed-versions.ts';

/** Longest wait before the first report: machines that start together report at different times. Milliseconds. */
const FIRST_WAIT_MS_MAX = 60_000;
/** After a failure. Milliseconds. */
const RETRY_MS = 300_000;
/** Between looks whether a shutdown was cancelled. Milliseconds. */
const SHUTDOWN_CHECK_MS = 10_000;
const DOWNLOAD_MS = 15 * 60_000;

export interface SelfUpdateDependencies {
  readonly nodeName: string;
  /** The version of this process. */
  readonly version: string;
  readonly architecture: string;
  readonly periodMs: number;
  readonly api: KubeApi;
  readonly versions: InstalledVersions;
  readonly source: UpdateSource;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly recordEvent: (event: NodeEvent) => void;
  /** Whether pods are being terminated because the machine shuts down. */
  readonly isShuttingDown: () => boolean;
  /** Ends the process; its service starts the next version. */
  readonly restart: () => void;
}

export class SelfUpdate {
  readonly #dependencies: SelfUpdateDependencies;
  #beats = 0;
  #confirming: Promise<void> | undefined;
  #reportNow = new AbortController();
  /** Set by the first outcome of a heartbeat. Resolves with an artifact that may be tried again. */
  #judging: Promise<FailedArtifact | undefined> | undefined;
  /** The failure that was recorded as an event. */
  #reportedFailure: string | undefined;

  constructor(dependencies: SelfUpdateDependencies) {
    this.#dependencies = dependencies;
  }

  /** The cluster could not be reached, or did not accept the request for the Lease. */
  missed(): void {
    this.#judge(false);
  }

  /** A heartbeat was accepted. */
  beat(): void {
    this.#judge(true);
    this.#beats += 1;
    if (this.#beats !== CONFIRMING_BEATS) return;
    this.#confirming = this.#confirm().catch((error: unknown) => {
      // The next heartbeats try again. Until then the version stays on trial.
      this.#beats = 0;
      this.#dependencies.log.warn('the new version could not be confirmed', { error });
    });
  }

  /** Resolves when the confirmation that began is done. */
  async settled(): Promise<void> {
    await this.#judging;
    await this.#confirming;
  }

  /** Later outcomes say nothing of the time of the trial. */
  #judge(isReachable: boolean): void {
    const { versions, log } = this.#dependencies;
    this.#judging ??= versions.judge(isReachable).catch((error: unknown) => {
      log.warn('the record of a failed trial could not be written', { error });
      return undefined;
    });
  }

  /** Runs until stopped, or until the next version is installed. */
  async run(stop: AbortSignal): Promise<void> {
    const { time, fraction, log, periodMs, isShuttingDown, restart } = this.#dependencies;
    let waitMs = Math.min(FIRST_WAIT_MS_MAX, periodMs) * fraction();
    while (!stop.aborted) {
      this.#reportNow = new AbortController();
      await time.sleep(waitMs, AbortSignal.any([stop, this.#reportNow.signal]));
      if (stop.aborted) return;
      try {
        const outcome = await this.#report(stop);
        if (outcome === 'installed') {
          // This process holds the delay of the shutdown. Without it pods lose their grace periods.
          while (isShuttingDown() && !stop.aborted) await time.sleep(SHUTDOWN_CHECK_MS, stop);
          restart();
          return;
        }
        // In the last quarter of the period: nodes report at different times.
        waitMs = outcome ?? periodMs * (0.75 + 0.25 * fraction());
      } catch (error) {
        if (stop.aborted) return;
        log.warn('the agent could not be updated; it is tried again', { why: describeError(error) });
        waitMs = RETRY_MS * (1 + fraction());
      }
    }
  }

  async #confirm(): Promise<void> {
    const { versions, log, recordEvent, version } = this.#dependencies;
    const trial = await versions.trial();
    // Heartbeats of the version before prove nothing. It runs until its restart, and when the trial could not start.
    if (trial === undefined || trial.version !== version) return;
    await versions.confirm(trial);
    log.info('the new version is confirmed', { version });
    recordEvent({ type: 'Normal', reason: 'AgentUpdated', message: `nodekeeper-agent ${version} runs.` });
    this.#reportNow.abort();
  }

  /** Milliseconds until the next report; undefined: the period. */
  async #report(stop: AbortSignal): Promise<number | 'installed' | undefined> {
    const { api, versions, nodeName, version, architecture, log } = this.#dependencies;
    const trial = await versions.trial();
    // On trial it runs the new version, but may return to the one before.
    if (trial?.version === version) return RETRY_MS;
    // The start program could not write its records, and started the installed version.
    if (trial !== undefined) await versions.abandon(trial);
    const again = await this.#judging;
    const failures = await versions.failed();
    // The first heartbeat decides about it.
    if (this.#judging === undefined && failures.some(({ isDoubtful }) => isDoubtful)) return FIRST_WAIT_MS_MAX;
    if (again !== undefined) return this.#delay(again);
    const failed = failures.at(-1);
    this.#recordFailure(failed);
    const request = updateRequest({ nodeName, version, architecture, failed });
    const answer = updateAnswer(await api.send({ ...request, signal: stop }));
    switch (answer.kind) {
      case 'none':
        return undefined;
      case 'wait':
        return answer.waitMs;
      case 'failed':
        log.warn('the version of the agent could not be reported', { why: answer.why });
        return RETRY_MS;
      case 'update':
        return this.#update(answer.release, failures, stop);
    }
  }

  async #update(
    release: OfferedRelease,
    failures: readonly FailedArtifact[],
    stop: AbortSignal,
  ): Promise<number | 'installed' | undefined> {
    const { api, versions, nodeName, version, architecture } = this.#dependencies;
    const failed = failures.find(({ sha256 }) => sha256 === release.sha256);
    if (failed === undefined) return (await this.#install(release, stop)) ? 'installed' : 0;
    // The report had a newer failure. This one ends the grant.
    await api.send({ ...updateRequest({ nodeName, version, architecture, failed }), signal: stop });
    // It becomes the newest. The API would grant the update again after a report without it.
    await versions.refuse(failed);
    this.#reportedFailure = failed.sha256;
    return undefined;
  }

  /** The time until the next trial. It begins when the API offers the artifact again. */
  #delay({ version, message }: FailedArtifact): number {
    const { version: running, recordEvent, fraction } = this.#dependencies;
    this.#judging = Promise.resolve(undefined);
    const why = `${message}, and ${running} could not send one, either`;
    recordEvent({
      type: 'Warning',
      reason: 'AgentUpdateDelayed',
      message: `nodekeeper-agent ${version} was not kept: ${why}. It is tried again.`,
    });
    return RETRY_MS * (1 + fraction());
  }

  #recordFailure(failed: FailedArtifact | undefined): void {
    if (failed === undefined || failed.sha256 === this.#reportedFailure) return;
    this.#reportedFailure = failed.sha256;
    const message = `nodekeeper-agent ${failed.version} was not kept: ${failed.message}. ${this.#dependencies.version} runs.`;
    this.#dependencies.recordEvent({ type: 'Warning', reason: 'AgentUpdateFailed', message });
  }

  /** False if the file does not run here, which is remembered. */
  async #install(release: OfferedRelease, stop: AbortSignal): Promise<boolean> {
    const { source, versions, log, recordEvent } = this.#dependencies;
    const { version, sha256 } = release;
    const fault = signatureFault(release, this.#dependencies.version, source.isSigned);
    if (fault !== undefined) {
      const message = `nodekeeper-agent ${version} is not installed: ${fault}`;
      recordEvent({ type: 'Warning', reason: 'AgentUpdateDelayed', message });
      throw new Error(fault);
    }
    recordEvent({ type: 'Normal', reason: 'AgentUpdating', message: `Installing nodekeeper-agent ${version}.` });
    const temporary = await this.#download(release, stop);
    const printed = await source.versionOf(temporary).catch((cause: unknown) => cause as Error);
    if (printed !== version) {
      const message = typeof printed === 'string' ? `it is version ${printed}` : `it does not run: ${printed.message}`;
      // First: it does not stay where the refusal cannot be stored.
      await versions.discard(temporary);
      await versions.refuse({ version, sha256, message });
      log.warn('the new version was refused', { version, why: message });
      return false;
    }
    await versions.tryNext(temporary, { version, sha256 });
    log.info('a new version is installed; restarting', { version });
    return true;
  }

  /** Stores the file, and returns its temporary name. Rejects if it is not the file of the release. */
  async #download({ url, sha256, sizeBytes }: OfferedRelease, stop: AbortSignal): Promise<string> {
    const { source, versions, time } = this.#dependencies;
    const over = new AbortController();
    const done = new AbortController();
    void time.sleep(DOWNLOAD_MS, done.signal).then(() => over.abort(new Error(`no end after ${DOWNLOAD_MS} ms`)));
    const digest = source.digest();
    let bytes = 0;
    const content = source.download(url, {
      bytesMax: Math.min(UPDATE_BYTES_MAX, sizeBytes ?? UPDATE_BYTES_MAX),
      signal: AbortSignal.any([stop, over.signal]),
    });
    async function* measured(): AsyncIterable<Uint8Array> {
      for await (const piece of content) {
        digest.update(piece);
        bytes += piece.length;
        yield piece;
      }
      // Before the file is synced: a wrong one is not worth it.
      if (sizeBytes !== undefined && bytes !== sizeBytes) throw new Error(`${bytes} bytes instead of ${sizeBytes}`);
      const actual = digest.hex();
      if (actual !== sha256) throw new Error(`the file has the digest ${actual} instead of ${sha256}`);
    }
    try {
      return await versions.store(sha256, measured());
    } catch (cause) {
      const message = `${url} could not be downloaded: ${describeError(cause)}`;
      this.#dependencies.recordEvent({ type: 'Warning', reason: 'AgentUpdateDelayed', message });
      throw new Error(message, { cause });
    } finally {
      done.abort();
    }
  }
}
