/** AgentReleases: versions of the agent that nodes install themselves (docs/agent.md, "Updates"). */

import { wavesOf } from '../../agents/release-rollout.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesStatus, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeAgentRelease } from '../types.ts';
import { AGENT_RELEASES } from './resource.ts';
import { validateAgentRelease } from './validate.ts';

const MAX_UNAVAILABLE_DEFAULT = 1;

function waveCell({ spec = {}, status = {} }: KubeAgentRelease): string {
  if (status.wave === undefined) return NONE;
  const waves = wavesOf({ waves: spec.waves ?? [] });
  return waves[status.wave]?.name ?? `${Math.min(status.wave + 1, waves.length)} of ${waves.length}`;
}

export const agentreleases: ResourceDescriptor = servedKind(AGENT_RELEASES, {
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Version', 'Version of the agent.'),
    integerColumn('Nodes', 'Nodes of the release.'),
    integerColumn('Updated', 'Nodes that run the version.'),
    integerColumn('Updating', 'Nodes that update now.'),
    integerColumn('Failed', 'Nodes that returned to their previous version.'),
    integerColumn('Skipped', 'Nodes that do not install the version.'),
    textColumn('Wave', 'The first wave that is not complete.'),
    textColumn('Paused', 'Whether no further node begins to update.'),
    ageColumn,
  ],
  row: (object: KubeAgentRelease, nowMs) => [
    nameOf(object),
    object.spec?.version ?? '',
    object.status?.nodes ?? 0,
    object.status?.updated ?? 0,
    object.status?.updating?.length ?? 0,
    object.status?.failed?.length ?? 0,
    object.status?.skipped ?? 0,
    waveCell(object),
    String(object.spec?.paused ?? false),
    ageOf(object, nowMs),
  ],
  prepare: preparesStatus(AGENT_RELEASES, (spec = {}) => ({
    maxUnavailable: MAX_UNAVAILABLE_DEFAULT,
    ...withoutNulls(spec),
  })),
  validate: (object: KubeAgentRelease, old) => validateAgentRelease(object, old),
});
