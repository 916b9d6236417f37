import {
  any,
  embedded,
  int64,
  kindStruct,
  required,
  type StructSchema,
  struct,
  text,
} from '../../kubernetes/schema.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { metadata } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';

const about = struct(`${OURS}.DecisionSubject`, 'Subject of the decision.', {
  kind: required(text('Node, Pod, Zone or Fleet.')),
  namespace: text('Only for pods.'),
  name: required(text('Its name; for a zone, its key.')),
  uid: text('Its uid, if it has one.'),
});

export const decision: StructSchema = kindStruct(
  `${OURS}.Decision`,
  { group: IDENTITY_GROUP, version: 'v1alpha1', kind: 'Decision' },
  'One decision of a controller and its inputs. Only controllers write it; it is deleted after 30 days.',
  {
    metadata,
    spec: embedded(
      struct(`${OURS}.DecisionSpec`, 'The record.', {
        v: int64('Version of this form.'),
        act: text('What was done, or not done.'),
        about: embedded(about, 'What it is about.'),
        at: text('Server time of the decision; RFC 3339 with milliseconds.'),
        atMs: int64('The same in milliseconds since the epoch.'),
        reason: text('Why, for people.'),
        rule: text('The rule that decided; fact if no rule did.'),
        inputs: any('Inputs of the rule.'),
        outcome: any('Outcome of the rule.'),
        policy: text('Hash of the policy in effect.'),
        slot: int64('Tick of the decision; absent for a decision on a change.'),
        fence: int64('Fencing number of that tick.'),
        sum: text('Hash of the record.'),
      }),
      'The record.',
    ),
  },
);
