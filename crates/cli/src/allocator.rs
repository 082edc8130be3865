//! The command's memory: large blocks that were given back are kept for who asks next, for all
//! threads in one place and up to a fixed size.
//!
//! The vectors of each step of a fit, and what products of matrices copy of their factors, are
//! blocks that come and go. musl takes nearly every block of 32 KiB or more from the system by
//! itself and returns it at once, so that they are new pages each time. glibc keeps them, but for
//! each thread in a place of its own, in pieces that fit what came before: with 14 threads it held
//! twice what was in use, and not the same in two runs. Here 4 MiB of those last given back are
//! kept and handed out again where as much is asked for; glibc is told to give back the rest
//! (`argwhy::machine::give_back_freed_memory`).
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks that are kept: from those that musl gives a mapping of their own.
pub const SMALLEST: usize = 32 << 10;
const LARGEST: usize = 2 << 20;
/// How many are kept, and how much they may be together: a plan counts that as part of the program.
const MOST: usize = 64;
const ROOM: usize = 4 << 20;
const PAGE: usize = 4 << 10;
/// Blocks that are worth large pages.
const HUGE: usize = 4 << 20;

/// The system's allocator with a shelf of large blocks before it.
pub struct Keeping {
    shelf: UnsafeCell<Shelf>,
    /// Whoever finds it taken goes to the system instead of waiting.
    taken: AtomicBool,
}

/// Blocks given back last, the oldest first.
struct Shelf {
    blocks: [Option<(NonNull<u8>, Layout)>; MOST],
    count: usize,
    bytes: usize,
}

// SAFETY: the shelf is touched by whoever has set `taken`, alone; blocks belong to nobody else.
unsafe impl Sync for Keeping {}

impl Keeping {
    pub const fn new() -> Self {
        let shelf = Shelf { blocks: [None; MOST], count: 0, bytes: 0 };
        Self { shelf: UnsafeCell::new(shelf), taken: AtomicBool::new(false) }
    }

    /// What `act` makes of the shelf; none where somebody else is at it.
    fn at_shelf<R>(&self, act: impl FnOnce(&mut Shelf) -> R) -> Option<R> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: `taken` was not set, and is until this reference is gone. `act` neither
        // allocates nor panics: it moves pointers.
        let result = act(unsafe { &mut *self.shelf.get() });
        self.taken.store(false, Ordering::Release);
        Some(result)
    }
}

impl Shelf {
    fn take(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let kept = self.blocks[..self.count].iter().flatten();
        // The one given back last is most likely to be in a cache.
        let at = kept.enumerate().filter(|(_, block)| block.1 == layout).last()?.0;
        self.remove(at).map(|block| block.0)
    }

    fn remove(&mut self, at: usize) -> Option<(NonNull<u8>, Layout)> {
        let block = self.blocks[at].take()?;
        self.blocks[at..self.count].rotate_left(1);
        self.count -= 1;
        self.bytes -= block.1.size();
        Some(block)
    }

    /// Whether there is room; else the oldest block has to go first.
    fn has_room(&self, layout: Layout) -> bool {
        self.count < MOST && self.bytes + layout.size() <= ROOM
    }

    fn put(&mut self, block: NonNull<u8>, layout: Layout) {
        self.blocks[self.count] = Some((block, layout));
        self.count += 1;
        self.bytes += layout.size();
    }
}

/// What is asked of the system: one of eight sizes for each power of two, so that blocks that are
/// nearly equal are. What nobody touches of one takes no memory. The same of the same layout,
/// always: it is what the block is given back with.
fn rounded(layout: Layout) -> Layout {
    let size = layout.size();
    if !(SMALLEST..=LARGEST).contains(&size) {
        return layout;
    }
    let step = ((1 << size.ilog2()) / 8).max(PAGE);
    let whole = size.checked_next_multiple_of(step);
    whole.and_then(|size| Layout::from_size_align(size, layout.align()).ok()).unwrap_or(layout)
}

/// Very large blocks, which are untouched so far, in large pages.
fn in_large_pages(block: *mut u8, layout: Layout) -> *mut u8 {
    if layout.size() >= HUGE && !block.is_null() {
        // SAFETY: a block that nobody has yet.
        unsafe { argwhy::machine::prefer_large_pages(block, layout.size()) };
    }
    block
}

fn is_kept(layout: Layout) -> bool {
    (SMALLEST..=LARGEST).contains(&layout.size()) && layout.align() <= PAGE
}

// SAFETY: blocks come from the system and go back to it with the layout they were asked for,
// `rounded`, which holds at least what the caller wants and is a function of that. One on the
// shelf belongs to nobody: it was given back, and leaves the shelf when it is handed out.
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let layout = rounded(layout);
        if is_kept(layout)
            && let Some(Some(block)) = self.at_shelf(|shelf| shelf.take(layout))
        {
            return block.as_ptr();
        }
        // SAFETY: the caller's promise; rounding makes no size zero.
        in_large_pages(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let layout = rounded(layout);
        if is_kept(layout)
            && let Some(Some(block)) = self.at_shelf(|shelf| shelf.take(layout))
        {
            // SAFETY: the block has that size.
            unsafe { block.as_ptr().write_bytes(0, layout.size()) };
            return block.as_ptr();
        }
        // SAFETY: as in `alloc`.
        in_large_pages(unsafe { System.alloc_zeroed(layout) }, layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let layout = rounded(layout);
        if is_kept(layout)
            && let Some(block) = NonNull::new(block)
        {
            // The oldest make room, one after the other; they go to the system outside the lock.
            loop {
                let oldest = self.at_shelf(|shelf| {
                    if shelf.has_room(layout) {
                        shelf.put(block, layout);
                        return Ok(());
                    }
                    Err(shelf.remove(0))
                });
                match oldest {
                    Some(Ok(())) => return,
                    Some(Err(Some((oldest, its)))) => {
                        // SAFETY: it was asked for with this layout and left the shelf just now.
                        unsafe { System.dealloc(oldest.as_ptr(), its) };
                    }
                    Some(Err(None)) | None => break,
                }
            }
        }
        // SAFETY: the caller's promise, and `rounded` is what was asked for.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, Ok(new)) = (rounded(layout), Layout::from_size_align(size, layout.align()))
        else {
            return null_mut();
        };
        // SAFETY: as in `dealloc`; musl moves large blocks without copying them.
        unsafe { System.realloc(block, old, rounded(new).size()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn a_block_given_back_is_handed_out_again_and_cleared_where_zeros_are_wanted() {
        let keeping = Keeping::new();
        let (asked, nearly) = (large(SMALLEST + 8), large(SMALLEST + 4000));
        // SAFETY: every block is given back once, with the layout it was asked for.
        unsafe {
            let first = keeping.alloc(asked);
            first.write_bytes(7, asked.size());
            keeping.dealloc(first, asked);
            let again = keeping.alloc_zeroed(nearly);
            assert_eq!(again, first);
            assert!((0..nearly.size()).all(|at| again.add(at).read() == 0));
            let other = keeping.alloc(asked);
            assert_ne!(other, again);
            keeping.dealloc(other, asked);
            keeping.dealloc(again, nearly);
        }
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let keeping = Keeping::new();
        let layout = large(LARGEST);
        // SAFETY: as above.
        unsafe {
            let blocks: Vec<_> = (0..10).map(|_| keeping.alloc(layout)).collect();
            blocks.iter().for_each(|&block| keeping.dealloc(block, layout));
            let bytes = keeping.at_shelf(|shelf| shelf.bytes).unwrap();
            assert_eq!(bytes, ROOM);
            // Small ones and very large ones are the system's, and so is what somebody holds.
            for size in [16, SMALLEST - 1, LARGEST + 1] {
                let block = keeping.alloc(large(size));
                keeping.dealloc(block, large(size));
            }
            assert_eq!(keeping.at_shelf(|shelf| shelf.bytes).unwrap(), bytes);
            while let Some(Some((block, its))) = keeping.at_shelf(|shelf| shelf.remove(0)) {
                System.dealloc(block.as_ptr(), its);
            }
        }
    }

    #[test]
    fn threads_share_it_and_growing_keeps_what_is_inside() {
        let keeping = Keeping::new();
        std::thread::scope(|scope| {
            for mark in 1..=4_u8 {
                let keeping = &keeping;
                scope.spawn(move || {
                    for round in 0..200 {
                        let layout = large(SMALLEST + (round % 5) * PAGE);
                        let grown = large(layout.size() + 3 * PAGE + 5);
                        // SAFETY: as above; sizes are those of the layouts.
                        unsafe {
                            let block = keeping.alloc(layout);
                            block.write_bytes(mark, layout.size());
                            let block = keeping.realloc(block, layout, grown.size());
                            let all = std::slice::from_raw_parts(block, layout.size());
                            assert!(all.iter().all(|&byte| byte == mark));
                            keeping.dealloc(block, grown);
                        }
                    }
                });
            }
        });
    }
}
