/**
 * Makes and removes the volumes of the provisioner nodekeeper.dev/local on this machine: a directory each.
 *
 * The response to a heartbeat says that there is something to do. The agent then lists it, and does one after the
 * other: directory, PersistentVolume, done. Each step may be repeated, and a step that fails is repeated when the
 * binder asks again, some minutes later. One volume that cannot be made affects no other.
 *
 * Data is removed before the PersistentVolume: an agent that is killed in between finds the volume again. A volume is
 * never made over the data of another one: its name has the uid of its claim.
 */

import { LOCAL_PROVISIONER } from '../../../shared/kinds/persistentvolumes/annotations.ts';
import { QUOTA_ANNOTATION } from '../../../shared/kinds/persistentvolumes/local-volume.rule.ts';
import type { KubePersistentVolume } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { ClaimDirectories } from '../../ports/claim-directories.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { EventSubject } from '../../rules/event-request.ts';
import { answeredWith, describeAnswer } from '../../rules/kube-answer.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import { isDirectory, requestedBytes, type VolumeWork, volumesPath, volumeWorks } from '../../rules/volume-work.ts';
import { describeError } from '../describe-error.ts';

export interface VolumeMakerDependencies {
  readonly nodeName: string;
  readonly api: KubeApi;
  readonly directories: ClaimDirectories;
  readonly log: Log;
  readonly stop: AbortSignal;
  readonly recordEvent: (subject: EventSubject, event: NodeEvent) => void;
}

const VOLUMES = '/api/v1/persistentvolumes';

export class VolumeMaker {
  readonly #dependencies: VolumeMakerDependencies;
  #running: Promise<void> | undefined;
  #again = false;

  constructor(dependencies: VolumeMakerDependencies) {
    this.#dependencies = dependencies;
  }

  /** Something is to be done for volumes of this node. */
  requested(): void {
    if (this.#dependencies.stop.aborted) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return;
    }
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.requested();
    });
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    const { api, nodeName, log, stop } = this.#dependencies;
    const answer = await api.send({ method: 'GET', path: volumesPath(nodeName), signal: stop });
    const works = volumeWorks(answer);
    if (works === undefined) {
      if (!stop.aborted) log.warn('the volumes to make cannot be listed', { why: describeAnswer(answer) });
      return;
    }
    for (const work of works) {
      if (stop.aborted) return;
      const fault = await this.#do(work).catch((cause: unknown) => describeError(cause));
      if (fault === undefined) await api.send({ method: 'DELETE', path: `${volumesPath(nodeName)}/${work.id}` });
      else this.#failed(work, fault);
    }
  }

  /** Why it could not be done. */
  #do({ provision, remove = '' }: VolumeWork): Promise<string | undefined> {
    return provision === undefined ? this.#remove(remove) : this.#provision(provision);
  }

  async #provision(offered: KubePersistentVolume): Promise<string | undefined> {
    const { api, directories, recordEvent } = this.#dependencies;
    if (!isDirectory(offered)) return `volumeMode ${offered.spec?.volumeMode} is not supported`;
    const wanted = requestedBytes(offered);
    const free = directories.freeBytes();
    if (wanted > free) return `${wanted} bytes are requested, and the file system of this node has ${free} free`;
    const { name = '' } = offered.metadata;
    const { path, unlimited } = await directories.make(name, wanted);
    const quota = unlimited === undefined ? 'project' : 'none';
    const annotations = { ...offered.metadata.annotations, [QUOTA_ANNOTATION]: quota };
    const body = {
      ...offered,
      metadata: { ...offered.metadata, annotations },
      spec: { ...offered.spec, local: { path } },
    };
    const answer = await api.send({ method: 'POST', path: VOLUMES, body });
    // 409: it was created before, and its answer was lost.
    if (answeredWith(answer, 200, 201, 409)) {
      const limit = unlimited === undefined ? '' : `, without a limit of its size: ${unlimited}`;
      const message = `Successfully provisioned volume ${name}${limit}`;
      recordEvent(subjectOf(offered), { type: 'Normal', reason: 'ProvisioningSucceeded', message });
      return undefined;
    }
    // The directory stays: a refusal of a repeated request may follow the one that made the volume, with data in it.
    return describeAnswer(answer);
  }

  async #remove(name: string): Promise<string | undefined> {
    const { api, directories } = this.#dependencies;
    await directories.remove(name);
    const answer = await api.send({ method: 'DELETE', path: `${VOLUMES}/${encodeURIComponent(name)}` });
    return answeredWith(answer, 200, 202, 404) ? undefined : describeAnswer(answer);
  }

  #failed({ provision, remove = '' }: VolumeWork, fault: string): void {
    const { log, nodeName, recordEvent } = this.#dependencies;
    log.warn('a volume could not be made or removed', { volume: provision?.metadata.name ?? remove, why: fault });
    if (provision === undefined) return;
    const { storageClassName = '' } = provision.spec ?? {};
    const message = `failed to provision volume with StorageClass ${JSON.stringify(storageClassName)}: ${LOCAL_PROVISIONER} on ${nodeName}: ${fault}`;
    recordEvent(subjectOf(provision), { type: 'Warning', reason: 'ProvisioningFailed', message });
  }
}

/** The claim of an offered volume. */
function subjectOf({ spec }: KubePersistentVolume): EventSubject {
  const { namespace = '', name = '', uid = '' } = spec?.claimRef ?? {};
  return { kind: 'PersistentVolumeClaim', namespace, name, uid };
}
