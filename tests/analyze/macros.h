/* Of the libraries' macros, what cppcheck must know to read what stands behind them. */
#define json_array_foreach(array, i, value)                                                        \
	for (i = 0; i < json_array_size(array) && (value = json_array_get(array, i)); i++)
#define json_object_foreach(object, key, value)                                                    \
	for (key = json_object_iter_key(json_object_iter(object));                                 \
	     key && (value = json_object_get(object, key));                                        \
	     key = json_object_iter_key(json_object_iter_at(object, key)))
#define JSON_INTEGER_FORMAT "lld"
/* The kernel's, of guest-kmod/. */
#define list_for_each_entry(at, head, member)                                                      \
	for (at = (void *)(head)->next; &at->member != (head); at = (void *)at->member.next)
