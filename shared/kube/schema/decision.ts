import { IDENTITY_GROUP } from './identity.ts';
import { metadata } from './meta.ts';
import { any, embedded, int64, kindStruct, required, type StructSchema, struct, text } from './schema.ts';

const OURS = 'dev.nodekeeper.v1alpha1';

const about = struct(`${OURS}.DecisionSubject`, 'What was decided about.', {
  kind: required(text('Node, Pod, Zone or Fleet.')),
  namespace: text('Of pods.'),
  name: required(text('Its name; of a zone its key.')),
  uid: text('Its uid, where it has one.'),
});

export const decision: StructSchema = kindStruct(
  `${OURS}.Decision`,
  { group: IDENTITY_GROUP, version: 'v1alpha1', kind: 'Decision' },
  'One decision of a controller, with what it rests on. Written by the controllers, read by everybody else; gone after 30 days.',
  {
    metadata,
    spec: embedded(
      struct(`${OURS}.DecisionSpec`, 'The record.', {
        v: int64('Version of this form.'),
        act: text('What was done, or not done.'),
        about: embedded(about, 'What it is about.'),
        at: text('When, by the time of the server; RFC 3339 with milliseconds.'),
        atMs: int64('The same in milliseconds since the epoch.'),
        reason: text('Why, for people.'),
        rule: text('The rule that decided; fact where none did.'),
        inputs: any('What the rule was given.'),
        outcome: any('What the rule said.'),
        policy: text('Tells policies apart: a hash of the whole.'),
        slot: int64('The tick that decided; absent where a change did.'),
        fence: int64('Fencing number of that tick.'),
        sum: text('Hash of the record.'),
      }),
      'The record.',
    ),
  },
);
