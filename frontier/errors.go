package frontier

import "errors"

// These errors say why a folder cannot be used. An error that a function of this package returns
// wraps one of them in a [*FolderError].
var (
	// ErrInUse means that this process or another one has the folder open.
	ErrInUse = errors.New("in use: this process or another one has it open")
	// ErrVersion means that a later version of this package has written the folder.
	ErrVersion = errors.New("written by a later version of this package")
	// ErrDamaged means that the files in the folder cannot be read or are not as they were written,
	// or that the folder contains other files. The message says what to do.
	ErrDamaged = errors.New("damaged, or not a frontier")
	// ErrReadOnly means that the folder cannot be written.
	ErrReadOnly = errors.New("not writable")
	// ErrFull means that the disk is full. The change was not recorded.
	ErrFull = errors.New("disk is full")
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("closed")
)

// A FolderError is an error of the folder of a Frontier.
type FolderError struct {
	Dir string // the folder, as it was given to Open
	Err error  // wraps one of ErrInUse, ErrVersion, ErrDamaged, ErrReadOnly, ErrFull and ErrClosed, or is an error of the file system
}

// Error returns a message with the folder and the cause.
func (e *FolderError) Error() string { return "frontier: " + e.Dir + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// An OptionError is a fault of an option that was passed to Open.
type OptionError struct {
	Option string // the name of the function that returned the option
	Reason string
}

// Error returns a message with the name of the option.
func (e *OptionError) Error() string { return "frontier: " + e.Option + ": " + e.Reason }
