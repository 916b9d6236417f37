/**
 * What the controllers ask of the cloud that runs some of the machines. Nothing here throws for what the cloud may answer:
 * a refusal, a throttle or a silence is an outcome that the rules know (shared/controllers/cloud-node/rule.ts, volume-detach.ts).
 */
import type { CloudAnswer, InstanceMetadata } from '../domain/cloud/instance.ts';
import type { Ec2Instance } from '../domain/cloud/provider-id.ts';

/** What is known of an instance besides its state; absent where the cloud gave no such answer. */
export interface InstanceAnswer {
  readonly answer: CloudAnswer;
  /** Of a found instance that is not terminated. */
  readonly metadata?: InstanceMetadata;
}

export type VolumeAnswer =
  | {
      readonly kind: 'found';
      /** Carries the tag that our permission to detach asks for. */
      readonly tagged: boolean;
      readonly attachments: readonly {
        readonly instanceId: string;
        readonly state: 'attaching' | 'attached' | 'detaching' | 'detached' | 'busy';
        readonly isRootDevice: boolean;
        readonly managedByAws: boolean;
      }[];
    }
  | { readonly kind: 'notFound' }
  | { readonly kind: 'failed'; readonly cause: 'error' | 'throttled' | 'timeout'; readonly message: string };

export type DetachOutcome =
  /** The detach was accepted; the volume may still be detaching. */
  | { readonly kind: 'detaching' }
  /** It was not attached there (any more). */
  | { readonly kind: 'notAttached' }
  /** The cloud will not, now or ever; a person has to look. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'failed'; readonly cause: 'error' | 'throttled' | 'timeout'; readonly message: string };

export interface Cloud {
  /**
   * The state of instances, in as few calls as the cloud allows. Every id asked for is in the answer, by instance id; an
   * instance outside our account or region is `foreign`, never `notFound`. To tell the two apart takes a call for each
   * instance that is missing: of many some are `failed`, and have their turn in a later pass.
   */
  describeInstances(instances: readonly Ec2Instance[]): Promise<ReadonlyMap<string, InstanceAnswer>>;
  /** Volumes by id; every id asked for is in the answer. */
  describeVolumes(volumeIds: readonly string[]): Promise<ReadonlyMap<string, VolumeAnswer>>;
  /** `force` may damage what is on the volume; see decideVolumeDetach. */
  detachVolume(request: {
    readonly volumeId: string;
    readonly instanceId: string;
    readonly force: boolean;
  }): Promise<DetachOutcome>;
}
