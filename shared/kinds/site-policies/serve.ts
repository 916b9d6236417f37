/** SitePolicies: which pods the hub of a site may start on another machine (docs/hub.md). */
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesSpec, servedKind } from '../served-kind.ts';
import type { KubeSitePolicy } from '../types.ts';
import { SITE_POLICIES } from './resource.ts';
import { validateSitePolicy } from './validate.ts';

export const sitepolicies: ResourceDescriptor = servedKind(SITE_POLICIES, {
  columns: [
    nameColumn,
    textColumn('Hub', 'Its user.'),
    integerColumn('Nodes', 'Machines.'),
    textColumn('Namespaces', 'Where pods may move.'),
    ageColumn,
  ],
  row: (object: KubeSitePolicy, nowMs) => [
    nameOf(object),
    object.spec?.hub ?? '',
    object.spec?.nodes?.length ?? 0,
    (object.spec?.namespaces ?? []).join(','),
    ageOf(object, nowMs),
  ],
  prepare: preparesSpec(SITE_POLICIES, (spec = {}) => withoutNulls(spec)),
  validate: (object: KubeSitePolicy, old) => validateSitePolicy(object, old),
});
