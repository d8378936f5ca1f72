-- macro: why an object is no row, by the names of it and of the objects in it; null where each stands once
create or replace macro named_twice(names_of_objects) as
    'a name stands twice: ''' || list_filter(
        list_transform(
            names_of_objects,
            lambda names: case when len(names) <> list_unique(names) then
                list_filter(names, lambda name, place: list_position(names, name) < place)[1]
            end
        ),
        lambda name: name is not null
    )[1] || ''''
