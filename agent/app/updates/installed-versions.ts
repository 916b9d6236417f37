/**
 * The steps of an update on the disk. Before and after each of them the machine has an agent that starts:
 *
 *   1  the file of the new version: written under a temporary name, synced, renamed
 *   2  trial.json: what is tried, and the version before; names are synced
 *   3  current → the new file: a temporary link, renamed, the name synced
 *   4  the agent exits, and its service starts it again: trial.json counts the starts
 *   5  confirmed: trial.json is removed. Otherwise failed.json, then current → the version before, then trial.json
 *
 * A power cut leaves the state before or after a step. The next start continues from there (startDecision).
 */
import { defined } from '../../../shared/defined.ts';
import type { UpdateFiles } from '../../ports/update-files.ts';
import {
  CURRENT_LINK,
  FAILED_RECORD,
  type FailedArtifact,
  failedText,
  failedWithoutText,
  fileNameOf,
  INCONCLUSIVE_RECORD,
  inconclusiveText,
  isAgentFile,
  parseFailed,
  parseInconclusive,
  parseTrial,
  SILENT_TRIALS_MAX,
  startDecision,
  TEMPORARY_PREFIX,
  TRIAL_RECORD,
  type Trial,
  trialText,
} from '../../rules/update-record.ts';

export interface Started {
  /** File to run; '' for the installed agent. */
  readonly file: string;
  /** Set while the version must prove itself. */
  readonly trial: Trial | undefined;
}

export class InstalledVersions {
  readonly #files: UpdateFiles;

  constructor(files: UpdateFiles) {
    this.#files = files;
  }

  /** The trial of the version that starts next; undefined if it is confirmed. */
  async trial(): Promise<Trial | undefined> {
    const trial = parseTrial(await this.#files.readText(TRIAL_RECORD));
    return trial?.file === (await this.#files.readLink(CURRENT_LINK)) ? trial : undefined;
  }

  async failed(): Promise<readonly FailedArtifact[]> {
    return parseFailed(await this.#files.readText(FAILED_RECORD));
  }

  /** Stores a file under a temporary name, which it returns. Nothing stays if the content ends with an error. */
  async store(sha256: string, content: AsyncIterable<Uint8Array>): Promise<string> {
    const temporary = `${TEMPORARY_PREFIX}${sha256}.mjs`;
    try {
      const file = await this.#files.create(temporary);
      try {
        for await (const bytes of content) await file.write(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (cause) {
      await this.#files.remove(temporary).catch(() => undefined);
      throw cause;
    }
    return temporary;
  }

  /** Removes a file that was stored and is not kept. */
  discard(temporary: string): Promise<void> {
    return this.#files.remove(temporary);
  }

  /** Makes the stored file the version that starts next, on trial. */
  async tryNext(temporary: string, release: Pick<Trial, 'version' | 'sha256'>): Promise<void> {
    const file = fileNameOf(release);
    await this.#files.rename(temporary, file);
    // The name is synced with that of the trial, which is before the link.
    const current = (await this.#files.readLink(CURRENT_LINK)) ?? '';
    // The current file did not start, and was downloaded again. It is no way back from itself.
    const previous = current === file ? '' : current;
    await this.#replace(TRIAL_RECORD, trialText({ ...release, file, previous, starts: 0 }));
    await this.#pointTo(file);
  }

  /** What a start runs. Ends an update that a power cut interrupted, or that failed. */
  async start(): Promise<Started> {
    const [trialRecord, current, failed, names] = await Promise.all([
      this.#files.readText(TRIAL_RECORD),
      this.#files.readLink(CURRENT_LINK),
      this.failed(),
      this.#files.names(),
    ]);
    const decision = startDecision({ current, trial: parseTrial(trialRecord), failed, names });
    switch (decision.kind) {
      case 'start':
        return { file: decision.file, trial: undefined };
      case 'discard':
        await this.#removeTrial();
        return { file: decision.file, trial: undefined };
      case 'try':
        await this.#replace(TRIAL_RECORD, trialText(decision.trial));
        return { file: decision.trial.file, trial: decision.trial };
      case 'rollBack':
        return { file: await this.rollBack(decision.trial, decision.message, decision), trial: undefined };
    }
  }

  /**
   * Returns to the version before, and remembers the artifact. Returns the file of that version. Doubtful is a trial
   * that ended without heartbeats: `judge` decides about the artifact.
   */
  async rollBack(
    trial: Trial,
    message: string,
    { isDoubtful }: Pick<FailedArtifact, 'isDoubtful'> = {},
  ): Promise<string> {
    const { version, sha256 } = trial;
    const known = await this.failed();
    if (!known.some((each) => each.sha256 === sha256)) {
      const failed = { version, sha256, message, ...defined({ isDoubtful }) };
      await this.#replace(FAILED_RECORD, failedText(known, failed));
    }
    await this.abandon(trial);
    return trial.previous;
  }

  /**
   * Decides about an artifact after a trial without heartbeats. The version before could send a heartbeat: the
   * artifact has failed. It could not, either: the artifact may be installed again, and is returned. After
   * SILENT_TRIALS_MAX trials it has failed in any case. A power cut between the two records counts a trial twice.
   */
  async judge(isReachable: boolean): Promise<FailedArtifact | undefined> {
    const known = await this.failed();
    const failed = known.find(({ isDoubtful }) => isDoubtful === true);
    if (failed === undefined) return undefined;
    const { isDoubtful, ...certain } = failed;
    const inconclusive = parseInconclusive(await this.#files.readText(INCONCLUSIVE_RECORD));
    const trials = 1 + (inconclusive.find(({ sha256 }) => sha256 === failed.sha256)?.trials ?? 0);
    if (isReachable || trials >= SILENT_TRIALS_MAX) {
      await this.#replace(FAILED_RECORD, failedText(known, certain));
      return undefined;
    }
    await this.#replace(INCONCLUSIVE_RECORD, inconclusiveText(inconclusive, { sha256: failed.sha256, trials }));
    await this.#replace(FAILED_RECORD, failedWithoutText(known, failed.sha256));
    return failed;
  }

  /** Ends a trial that did not start. The artifact may be installed again. */
  async abandon({ previous }: Trial): Promise<void> {
    await this.#pointTo(previous);
    await this.#removeTrial();
  }

  /** The artifact is not tried again, and was never started. */
  async refuse(failed: FailedArtifact): Promise<void> {
    await this.#replace(FAILED_RECORD, failedText(await this.failed(), failed));
  }

  /** The running version is kept. Removes the files of all others but the one before. */
  async confirm({ file, previous }: Trial): Promise<void> {
    await this.#removeTrial();
    for (const name of await this.#files.names()) {
      const isOld = isAgentFile(name) && name !== file && name !== previous;
      if (isOld || name.startsWith(TEMPORARY_PREFIX)) await this.#files.remove(name);
    }
  }

  async #removeTrial(): Promise<void> {
    await this.#files.remove(TRIAL_RECORD);
    await this.#files.syncNames();
  }

  /** '' removes the link: the installed agent starts. */
  async #pointTo(file: string): Promise<void> {
    if (file === '') await this.#files.remove(CURRENT_LINK);
    else {
      const temporary = `${TEMPORARY_PREFIX}${CURRENT_LINK}`;
      await this.#files.remove(temporary);
      await this.#files.link(temporary, file);
      await this.#files.rename(temporary, CURRENT_LINK);
    }
    await this.#files.syncNames();
  }

  async #replace(name: string, text: string): Promise<void> {
    const temporary = `${TEMPORARY_PREFIX}${name}`;
    const file = await this.#files.create(temporary);
    try {
      await file.write(Buffer.from(text));
      await file.sync();
    } finally {
      await file.close();
    }
    await this.#files.rename(temporary, name);
    await this.#files.syncNames();
  }
}
