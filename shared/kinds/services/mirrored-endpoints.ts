/** Which Endpoints of a client are mirrored into EndpointSlices. */
import type { KubeEndpoints } from '../types.ts';

const SKIP_LABEL = 'endpointslice.kubernetes.io/skip-mirror';
const LEADER_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/**
 * Not with the label that forbids it, nor where the object is the lock of a leader election.
 * Source: skipMirror in pkg/controller/endpointslicemirroring/utils.go.
 */
export const isMirrored = ({ metadata }: KubeEndpoints): boolean =>
  metadata.deletionTimestamp === undefined &&
  metadata.labels?.[SKIP_LABEL] !== 'true' &&
  metadata.annotations?.[LEADER_ANNOTATION] === undefined;
