/**
 * Requests of the controllers to the cloud that runs some of the machines. A refusal, a throttled call or a missing
 * response is an outcome and not an exception; the rules evaluate it (rule.ts,
 * functions/pod-gc/volumes/rule.ts).
 */
import type { CloudAnswer, InstanceMetadata } from './instance.ts';
import type { Ec2Instance } from './provider-id.ts';

/** Data of an instance besides its state; absent if the cloud did not return it. */
export interface InstanceAnswer {
  readonly answer: CloudAnswer;
  /** Present for a found instance that is not terminated. */
  readonly metadata?: InstanceMetadata;
}

export type VolumeAnswer =
  | {
      readonly kind: 'found';
      /** Has the tag that our permission to detach requires. */
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
  /** It was not, or is no longer, attached there. */
  | { readonly kind: 'notAttached' }
  /** The cloud refuses permanently; an operator must look at it. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'failed'; readonly cause: 'error' | 'throttled' | 'timeout'; readonly message: string };

export interface Cloud {
  /**
   * The state of instances, in as few calls as the cloud allows. The result has every requested id. An instance outside
   * our account or region is `foreign`, never `notFound`. To distinguish the two, each missing instance needs a call of
   * its own. If many are missing, some are `failed` and are requested in a later pass.
   */
  describeInstances(instances: readonly Ec2Instance[]): Promise<ReadonlyMap<string, InstanceAnswer>>;
  /** Volumes by id; the result has every requested id. */
  describeVolumes(volumeIds: readonly string[]): Promise<ReadonlyMap<string, VolumeAnswer>>;
  /** `force` may damage the data on the volume; see decideVolumeDetach. */
  detachVolume(request: {
    readonly volumeId: string;
    readonly instanceId: string;
    readonly force: boolean;
  }): Promise<DetachOutcome>;
}
