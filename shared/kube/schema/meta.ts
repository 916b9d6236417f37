import {
  any,
  atomicStruct,
  bool,
  embedded,
  int32,
  int64,
  keyedList,
  kindStruct,
  list,
  listOf,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textList,
  textMap,
  textSet,
  time,
} from './schema.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

export const ownerReference: StructSchema = atomicStruct(
  `${META}.OwnerReference`,
  'Points from an object to one that it belongs to, in the same namespace or cluster-scoped.',
  {
    apiVersion: required(text('API group and version of the owner.')),
    kind: required(text('Kind of the owner.')),
    name: required(text('Name of the owner.')),
    uid: required(text('UID of the owner; a namesake made later is another object.')),
    controller: pointer(bool('Whether the owner is the controller that manages this object.')),
    blockOwnerDeletion: pointer(bool('Whether a foreground deletion of the owner waits for this object.')),
  },
);

export const managedFieldsEntry: StructSchema = struct(
  `${META}.ManagedFieldsEntry`,
  'Which fields one manager set, in one way, through one version of the API.',
  {
    manager: text('Name of the manager.'),
    operation: text('How the fields were set: Apply or Update.'),
    apiVersion: text('Version of the API the field set is written in.'),
    time: pointer(time('When the entry last changed.')),
    fieldsType: text('Format of the field set; only FieldsV1 exists.'),
    fieldsV1: any('The field set.'),
    subresource: text('Subresource through which the fields were set, if any.'),
  },
);

export const objectMeta: StructSchema = struct(
  `${META}.ObjectMeta`,
  'What every stored object carries: its identity, its version and what others attached to it.',
  {
    name: text('Name, unique among the objects of a kind in a namespace. Cannot change.'),
    generateName: text('Prefix for a name made by the server, used when no name is given.'),
    namespace: text('Namespace the object lives in; empty for cluster-scoped kinds. Cannot change.'),
    selfLink: text('No longer filled in.'),
    uid: text('Identifier of this very object, given at creation.'),
    resourceVersion: text('Version of the stored object, for optimistic writes and for watches. Opaque to clients.'),
    generation: int64('Counts changes of the desired state.'),
    creationTimestamp: pointer(time('When the server created the object. Read-only.')),
    deletionTimestamp: pointer(time('When the object is due to go. Set by a deletion that does not end at once.')),
    deletionGracePeriodSeconds: pointer(int64('Seconds of grace a deletion leaves the object.')),
    labels: textMap('Keys and values to select objects by.'),
    annotations: textMap('Keys and values for tools; nothing selects by them.'),
    ownerReferences: keyedList(ownerReference, 'Objects that this one belongs to.', { mergeKey: 'uid' }),
    finalizers: textSet('What must be done before the object may go. Each name is taken off by who did it.'),
    managedFields: list(managedFieldsEntry, 'Which manager set which fields.'),
  },
);

export const listMeta: StructSchema = struct(`${META}.ListMeta`, 'What a list says about itself.', {
  selfLink: text('No longer filled in.'),
  resourceVersion: text('Version of the collection that the list shows; a watch may start from it.'),
  continue: text('Token for the next page; empty on the last one.'),
  remainingItemCount: pointer(int64('How many items follow, if that is known.')),
});

export const labelSelectorRequirement: StructSchema = struct(
  `${META}.LabelSelectorRequirement`,
  'One demand on the labels of an object.',
  {
    key: required(text('Label key.')),
    operator: required(text('How values relate to the label: In, NotIn, Exists or DoesNotExist.')),
    values: listOf({ kind: 'string' }, 'Values for In and NotIn; none for the others.', {}),
  },
);

export const labelSelector: StructSchema = atomicStruct(
  `${META}.LabelSelector`,
  'Selects objects by their labels; all demands must hold. An empty selector selects everything.',
  {
    matchLabels: textMap('Labels that must have exactly these values.'),
    matchExpressions: list(labelSelectorRequirement, 'Further demands.'),
  },
);

export const condition: StructSchema = struct(`${META}.Condition`, 'One aspect of the state of an object.', {
  type: required(text('Aspect in question.')),
  status: required(text('True, False or Unknown.')),
  observedGeneration: int64('Generation of the object that the condition was made from.'),
  lastTransitionTime: required(time('When the status last changed.')),
  reason: required(text('One word for the cause, for programs.')),
  message: required(text('Explanation for people.')),
});

export const preconditions: StructSchema = struct(
  `${META}.Preconditions`,
  'What must hold for an operation to be carried out.',
  {
    uid: pointer(text('UID the object must have.')),
    resourceVersion: pointer(text('Version the object must have.')),
  },
);

export const deleteOptions: StructSchema = kindStruct(
  `${META}.DeleteOptions`,
  { group: '', version: 'v1', kind: 'DeleteOptions' },
  'How an object is to be deleted.',
  {
    gracePeriodSeconds: pointer(int64('Seconds the object has left; 0 is at once. The kind has a default.')),
    preconditions: optionalStruct(preconditions, 'Deletes only if these hold; a conflict otherwise.'),
    orphanDependents: pointer(bool('Old form of propagationPolicy Orphan.')),
    propagationPolicy: pointer(text('What happens to dependents: Orphan, Background or Foreground.')),
    dryRun: textList('With "All", checks everything and stores nothing.'),
    ignoreStoreReadErrorWithClusterBreakingPotential: pointer(bool('Not supported here; must be absent or false.')),
  },
);

const statusCause: StructSchema = struct(`${META}.StatusCause`, 'One of the causes of a failure.', {
  reason: text('Cause, for programs.'),
  message: text('Explanation for people.'),
  field: text('Field of the body that is at fault.'),
});

const statusDetails: StructSchema = struct(`${META}.StatusDetails`, 'What a failure is about.', {
  name: text('Name of the object.'),
  group: text('API group of the object.'),
  kind: text('Kind or resource of the object.'),
  uid: text('UID of the object.'),
  causes: list(statusCause, 'What is wrong, one by one.'),
  retryAfterSeconds: int32('Seconds to wait before trying again.'),
});

export const status: StructSchema = kindStruct(
  `${META}.Status`,
  { group: '', version: 'v1', kind: 'Status' },
  'Answer to a request that returns no object, and to every failed one.',
  {
    metadata: embedded(listMeta, 'Metadata of the answer.'),
    status: text('Success or Failure.'),
    message: text('Explanation for people.'),
    reason: text('Cause of a failure, for programs.'),
    details: optionalStruct(statusDetails, 'What the failure is about.'),
    code: int32('HTTP status code.'),
  },
);

/** A reference to any object, as events and volume attachments carry it. */
export const objectReference: StructSchema = atomicStruct(
  'io.k8s.api.core.v1.ObjectReference',
  'Names another object, or a part of it.',
  {
    kind: text('Kind of the object.'),
    namespace: text('Namespace of the object.'),
    name: text('Name of the object.'),
    uid: text('UID of the object.'),
    apiVersion: text('API group and version of the object.'),
    resourceVersion: text('Version of the object that is meant.'),
    fieldPath: text('Part of the object that is meant, such as a container.'),
  },
);

/** The `metadata` field of a kind. */
export const metadata = embedded(objectMeta, 'Identity, version, labels and annotations of the object.');
