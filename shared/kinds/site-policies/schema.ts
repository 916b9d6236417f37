import { embedded, kindStruct, list, required, type StructSchema, struct, text } from '../../kubernetes/schema.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { metadata } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';
const WHAT = 'A hub and its site.';

export const sitePolicy: StructSchema = kindStruct(
  `${OURS}.SitePolicy`,
  { group: IDENTITY_GROUP, version: 'v1alpha1', kind: 'SitePolicy' },
  'Which pods the hub of a site may move without the cluster.',
  {
    metadata,
    spec: required(
      embedded(
        struct(`${OURS}.SitePolicySpec`, WHAT, {
          hub: required(text('User name of the hub. It alone decides where these pods run.')),
          nodes: required(list(text('Name of a Node.'), 'The machines of the site.')),
          namespaces: required(list(text('Name of a Namespace.'), 'Where pods may move.')),
        }),
        WHAT,
      ),
    ),
  },
);
