import {
  any,
  bool,
  embedded,
  kindStruct,
  list,
  optionalStruct,
  required,
  type StructSchema,
  struct,
  text,
} from '../../kubernetes/schema.ts';
import { CHANGE_READS } from '../../watches/change-read.ts';
import { metadata } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';

const resource = {
  group: text('API group; empty for the core group.'),
  resource: required(text('Plural name.')),
};

const cursor = struct(`${OURS}.ChangeCursor`, 'A resource, and from where its changes are read.', {
  ...resource,
  after: required(text('The resourceVersion of a list, or `through` of the previous answer.')),
  bounds: text('`bounds` of the previous answer, if it had them.'),
  from: text('`next` of the previous page of a list.'),
});

const change = struct(`${OURS}.ReadChange`, 'A change of an object.', {
  type: text('ADDED, MODIFIED or DELETED.'),
  object: any('The object after the change; a deleted one in its last state.'),
  previous: any('Labels and selectable fields before the change, if they differ.'),
});

const changes = struct(`${OURS}.ChangesOfResource`, 'What was read of a resource.', {
  ...resource,
  outcome: text('changes, listed, expired (list again), forbidden or notServed.'),
  through: text('All changes up to this resourceVersion have been returned.'),
  more: bool('There are later changes: ask again at once.'),
  changes: list(change, 'Oldest first.'),
  bounds: text('Names what the user may follow of the resource, if that is not the whole of it.'),
  objects: list(any('An object.'), 'A page of the objects that the user may follow.'),
  next: text('Where the next page begins.'),
  message: text('Why it is forbidden or not served.'),
});

export const changeRead: StructSchema = kindStruct(
  `${OURS}.ChangeRead`,
  CHANGE_READS,
  'Reads the changes of many resources at once, for a copy of the cluster. It is not stored.',
  {
    metadata,
    spec: embedded(
      struct(`${OURS}.ChangeReadSpec`, 'What is read.', {
        resources: required(list(cursor, 'The resources, each once; 100 at most.')),
        consistent: bool('Everything that was committed before the request is returned.'),
      }),
      'What is read.',
    ),
    status: optionalStruct(
      struct(`${OURS}.ChangeReadStatus`, 'The answer.', {
        clusterId: text('Names the cluster in the tokens of its machines.'),
        history: text('Names the history of the store. After a restore it is another one: list everything again.'),
        resources: list(changes, 'One for each resource, in the order of the request.'),
      }),
      'The answer. Set by the server.',
    ),
  },
);
